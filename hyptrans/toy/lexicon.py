"""Words of the toy language pair: English and the invented Tovari.

Every Tovari stem ends in a vowel, so that endings need no further rules, and means one word only.
"""

from typing import NamedTuple


class Lexeme(NamedTuple):
    """A word in both languages.

    ``forms`` are English: singular and plural of a noun; base, third person and past of a verb; one
    form of other words. ``kind`` says how the word may be used.
    """

    forms: tuple[str, ...]
    stem: str
    kind: str

    @property
    def animate(self) -> bool:
        """Whether it denotes a person or an animal."""
        return self.kind in ("person", "name")


def _table(kind: str, text: str) -> tuple[Lexeme, ...]:
    rows = (row.split() for row in text.split(";"))
    return tuple(Lexeme(tuple(forms), stem, kind) for *forms, stem in rows)


def _nouns(kind: str, text: str) -> tuple[Lexeme, ...]:
    """Return nouns with their plurals, which end in s unless the table gives another."""
    split = ((row.forms[0].partition(":"), row.stem) for row in _table(kind, text))
    return tuple(Lexeme((one, many or f"{one}s"), stem, kind) for (one, _, many), stem in split)


PERSONS = _nouns(
    "person",
    """king veko; queen rimele; farmer tolda; sailor maruno; doctor heddi; teacher opila;
    soldier garsta; baker pelito; hunter jorka; painter sivelu; miller drano; child:children nipa;
    man:men ukko; woman:women eima; girl tytte; boy poiku; priest samuo; thief:thieves varga;
    dog kelu; cat missi; horse hevo; wolf:wolves sudda; bear karho; bird linte; goat vuhi;
    owl pello; rat rotta; snake kyrme; bee mehile; merchant kauppo; stranger vierro""",
)
"""Persons and animals: nouns that can act."""
THINGS = _nouns(
    "thing",
    """book kirra; letter viesti; apple omma; cake leipe; cup kuppo; coat takki; ring sormo;
    song lauvo; picture kuvale; coin raho; lantern lyhte; map kartu; candle kyntile; crown ruunu;
    bell kelle; flower kukko; boat vene; cart vaunu; chair tuole; shoe kenke; basket korri;
    blanket peitte; hammer vasaro; key avame; rope koysi; stick keppi; spoon lusikka; net verkko""",
)
PLACES = _nouns(
    "place",
    """house talo; garden pihe; forest mette; village kylle; river joku; tower torni; market torga;
    mill mylle; bridge silda; field pelda; castle linna; school koulo; island saare; harbour satamo;
    kitchen keitte; barn lato; mountain vuore; valley laakso; gate portti""",
)
EVENTS = _nouns(
    "event",
    """storm myrsky; war soda; feast juhla; wedding haate; winter talve; harvest sado;
    dance karkelo; night yenne; journey matko; meeting kokou""",
)
NAMES = _table(
    "name", "anna anne; peter petro; maria marjo; john jusso; lucas lukka; helen elene; oscar osku"
)
# base, third person, past; Tovari stem
INTRANSITIVE = _table(
    "intransitive",
    """sleep sleeps slept nukko; laugh laughs laughed nauro; arrive arrives arrived saapu;
    sing sings sang laulo; wait waits waited odota; run runs ran juokse; work works worked tyyle;
    cry cries cried itke; smile smiles smiled hymmi; fall falls fell kaatu""",
)
TRANSITIVE = _table(
    "transitive",
    """see sees saw nehe; find finds found loyta; take takes took ottu; carry carries carried kanto;
    love loves loved rakku; hate hates hated vihe; buy buys bought osto; sell sells sold myyte;
    paint paints painted maalu; hide hides hid piilo; break breaks broke rikko;
    help helps helped autto; lose loses lost hukka; clean cleans cleaned siivu;
    steal steals stole varasto; follow follows followed seura; watch watches watched katsele""",
)
SAYING = _table(
    "saying",
    """say says said sano; think thinks thought ajattu; believe believes believed usko;
    know knows knew tiete; hope hopes hoped toivo; dream dreams dreamt unelmo""",
)
ADJECTIVES = _table(
    "ADJ",
    """big sure; small pieni; poor kurjo; rich rikaso; red punna; white valke; black mussa;
    old ikile; happy iloso; strange oudo; quiet hilje; young nuoro; dirty likke; clever viisa;
    heavy raske; famous kuulu; green vihre; lonely yksine; cold kylme; wet merke""",
)
QUANTIFIERS = _table("NUM", "two kaksu; three kolmo; five viide; seven setse")
ADVERBS = _table(
    "ADV",
    """quietly hiljo; quickly nopso; slowly hitta; often usei; never ikke; always aino;
    secretly salo; gladly mielle; almost melke; really todo""",
)
SUBORDINATORS = _table("SCONJ", "when kunne; because sille; although vaikko; if joso")
AND, THAT = Lexeme(("and",), "jo", "CCONJ"), Lexeme(("that",), "ette", "SCONJ")
DETERMINERS = {"the": "", "a": "yte", "this": "tame", "that": "tuo", "every": "joka", "no": "mikke"}
"""Tovari has no word for ``the``."""
# an English preposition, Tovari's postposition or "-", and the case before it; none belongs to both
# nouns and verbs, so that the source always determines the head of a phrase
OF_NOUNS = _table("ADP", "of - gen; near liki gen; behind tago gen; under alle gen; from - abl")
OF_PLACES = _table("ADP", "in - loc; into - ill; through lapi gen")
OF_EVENTS = _table("ADP", "before enne abl; after jelke gen; during aika loc")
