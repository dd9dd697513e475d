"""Words of the toy language pair: English on the one side, the invented Tovari on the other.

Every Tovari stem ends in a vowel, so that endings follow without further rules. A stem without
``a``, ``o`` or ``u`` is a front stem and takes the front form of each ending (vowel harmony).

A few English words have two Tovari stems, and the sentence decides which is meant: adjectives
that differ with people and things, verbs that differ with a noun and with a clause.
"""

from __future__ import annotations

from dataclasses import dataclass

_PERSONS = """
king veko; queen rimele; farmer tolda; sailor maruno; doctor heddi; teacher opila; soldier garsta;
baker pelito; hunter jorka; painter sivelu; miller drano; singer lielle; child:children nipa;
man:men ukko; woman:women eima; girl tytte; boy poiku; priest samuo; judge kerte;
thief:thieves varga;
shepherd lamuto; merchant kauppo; writer kirjele; dancer tansu; stranger vierro; neighbour napuro;
"""
_ANIMALS = """
dog kelu; cat missi; horse hevo; wolf:wolves sudda; bear karho; bird linte; fox:foxes ketti;
goat vuhi; cow lehme; crow varisu; owl pello; rat rotta; snake kyrme; bee mehile;
"""
_THINGS = """
book kirra; letter viesti; apple omma; cake leipe; cup kuppo; coat takki; ring sormo; song lauvo;
picture kuvale; coin raho; lantern lyhte; map kartu; candle kyntile; crown ruunu; bell kelle;
flower kukko; boat vene; cart vaunu; chair tuole; shoe kenke; basket korri; blanket peitte;
"""
_TOOLS = """
knife:knives veitse; hammer vasaro; key avame; rope koysi; stick keppi; spoon lusikka; net verkko;
axe kirve; needle neula; spade lapio;
"""
_PLACES = """
house talo; garden pihe; forest mette; village kylle; river joku; tower torni; market torga;
church kirko; mill mylle; bridge silda; field pelda; castle linna; school koulo; island saare;
harbour satamo; kitchen keitte; barn lato; mountain vuore; valley laakso; gate portti;
"""
_EVENTS = """
storm myrsky; war soda; feast juhla; wedding haate; winter talve; harvest sado; dance karkelo;
night yenne; journey matko; meeting kokou;
"""
_NAMES = """
anna anne; peter petro; maria marjo; john jusso; lucas lukka; helen elene; oscar osku; clara klaaro;
martin matti; nora nooro; simon simme; ruth ruuta;
"""
# lemma, third person, past; Tovari stem; case of the object (acc, dat) or none
_INTRANSITIVE = """
sleep sleeps slept nukko; laugh laughs laughed nauro; arrive arrives arrived saapu;
sing sings sang laulo; wait waits waited odota; run runs ran juokse;
whisper whispers whispered kuisko;
cry cries cried itke; smile smiles smiled hymmi; fall falls fell kaatu; work works worked tyyle;
rest rests rested leppe; wander wanders wandered vaelto; disappear disappears disappeared katoso;
"""
_TRANSITIVE = """
see sees saw nehe; find finds found loyta; take takes took ottu; carry carries carried kanto;
love loves loved rakku; hate hates hated vihe; buy buys bought osto; sell sells sold myyte;
paint paints painted maalu; hide hides hid piilo; break breaks broke rikko;
clean cleans cleaned siivu;
steal steals stole varasto; touch touches touched koske; bring brings brought tuove;
lose loses lost hukka; watch watches watched katsele; draw draws drew piirre;
"""
_DATIVE = """
help helps helped autto; follow follows followed seura; thank thanks thanked kiite;
trust trusts trusted luotto; answer answers answered vasta; obey obeys obeyed totele;
"""
_GIVING = """
give gives gave annu; send sends sent lehette; show shows showed neyte; lend lends lent laino;
promise promises promised lupa; offer offers offered tarjo;
"""
_SAYING = """
say says said sano; think thinks thought ajattu; believe believes believed usko;
dream dreams dreamt unelmo;
claim claims claimed veite; hope hopes hoped toivo;
"""
# with a noun one stem, with a clause another
_NOUN_OR_CLAUSE = """
know knows knew tunne tiete; hear hears heard kuule huoma;
remember remembers remembered muista palautu;
forget forgets forgot unohto jette; understand understands understood ymmarte selvi;
"""
_WANTING = """
want wants wanted halu; try tries tried yritte; begin begins began alko;
refuse refuses refused kielte;
decide decides decided pette; learn learns learned oppi;
"""
_ADJECTIVES = """
big sure; small pieni; poor kurjo; rich rikaso; red punna; white valke; black mussa; happy iloso;
strange oudo; quiet hilje; beautiful kaune; broken rikkine; dirty likke; clever viisa; heavy raske;
famous kuulu; green vihre; lonely yksine; cold kylme; wet merke;
"""
# with persons and animals one stem, with all else another
_TWO_SIDED_ADJECTIVES = """
old vanho ikile; young nuoro uute; good hyve kelpo; bad paha huono; strong vahva tukeva;
bright alykke kirka; weak heikko haura;
"""
_MANNERS = """
quietly hiljo; quickly nopso; slowly hitta; often usei; never ikke; always aino; secretly salo;
gladly mielle; almost melke; really todo;
"""
_TIMES = """
yesterday eilo; today tenne; now nyti; then sitto; sometimes toiso; soon pianu; once kerro;
"""


@dataclass(frozen=True)
class Noun:
    """A noun with its English plural; ``kind`` is person, animal, thing, tool, place or event."""

    singular: str
    plural: str
    stem: str
    kind: str

    @property
    def animate(self) -> bool:
        """Whether it is a person or an animal."""
        return self.kind in ("person", "animal", "name")


@dataclass(frozen=True)
class Verb:
    """A verb: English forms, the Tovari stem, the one it has before a clause, its object's case."""

    base: str
    third: str
    past: str
    stem: str
    clause_stem: str
    case: str


@dataclass(frozen=True)
class Adjective:
    """An adjective in English, and its stems in Tovari.

    ``animate_stem`` stands beside people and animals, ``other_stem`` beside all else.
    """

    form: str
    animate_stem: str
    other_stem: str


@dataclass(frozen=True)
class Preposition:
    """An English preposition; Tovari has a case ending and, for some, a postposition."""

    form: str
    case: str
    postposition: str = ""


def _rows(table: str) -> list[list[str]]:
    return [row.split() for row in table.split(";") if row.strip()]


def _plural(singular: str) -> str:
    if singular.endswith(("s", "x", "ch", "sh")):
        return singular + "es"
    if singular.endswith("y") and singular[-2] not in "aeiou":
        return singular[:-1] + "ies"
    return singular + "s"


def _nouns(table: str, kind: str) -> tuple[Noun, ...]:
    nouns = []
    for english, stem in _rows(table):
        singular, _, plural = english.partition(":")
        nouns.append(Noun(singular, plural or _plural(singular), stem, kind))
    return tuple(nouns)


def _verbs(table: str, case: str = "acc") -> tuple[Verb, ...]:
    return tuple(
        Verb(base, third, past, stems[0], stems[-1], case)
        for base, third, past, *stems in _rows(table)
    )


def _pairs(table: str) -> tuple[tuple[str, str], ...]:
    return tuple((english, stem) for english, stem in _rows(table))


PERSONS = _nouns(_PERSONS, "person")
ANIMALS = _nouns(_ANIMALS, "animal")
THINGS = _nouns(_THINGS, "thing")
TOOLS = _nouns(_TOOLS, "tool")
PLACES = _nouns(_PLACES, "place")
EVENTS = _nouns(_EVENTS, "event")
NAMES = _nouns(_NAMES, "name")

INTRANSITIVE = _verbs(_INTRANSITIVE)
TRANSITIVE = _verbs(_TRANSITIVE)
DATIVE = _verbs(_DATIVE, "dat")
GIVING = _verbs(_GIVING)
SAYING = _verbs(_SAYING)
NOUN_OR_CLAUSE = _verbs(_NOUN_OR_CLAUSE)
WANTING = _verbs(_WANTING)
BE = Verb("be", "is", "was", "olo", "olo", "nom")

ADJECTIVES = tuple(
    Adjective(form, stems[0], stems[-1])
    for form, *stems in _rows(_ADJECTIVES + ";" + _TWO_SIDED_ADJECTIVES)
)
MANNERS = _pairs(_MANNERS)
TIMES = _pairs(_TIMES)

# no preposition is in both lists: so the source never leaves open what a phrase belongs to
OF_NOUNS = (
    Preposition("of", "gen"),
    Preposition("near", "gen", "liki"),
    Preposition("behind", "gen", "tago"),
    Preposition("under", "gen", "alle"),
    Preposition("from", "abl"),
)
OF_VERBS_PLACE = (
    Preposition("in", "loc"),
    Preposition("into", "ill"),
    Preposition("through", "gen", "lapi"),
)
OF_VERBS_TIME = (
    Preposition("before", "abl", "enne"),
    Preposition("after", "gen", "jelke"),
    Preposition("during", "loc", "aika"),
)
WITH = Preposition("with", "ins")
TO = Preposition("to", "dat")

DETERMINERS = {"the": "", "a": "yte", "this": "tame", "that": "tuo", "every": "joka", "no": "mikke"}
QUANTIFIERS = {"two": "kaksu", "three": "kolmo", "five": "viide", "many": "mone", "few": "harvo"}
# nominative, accusative, Tovari stem, third person singular, plural
PRONOUNS = (
    ("he", "him", "henne", "Sing", "3"),
    ("she", "her", "henne", "Sing", "3"),
    ("they", "them", "heide", "Plur", "3"),
    ("we", "us", "meide", "Plur", "1"),
    ("i", "me", "mine", "Sing", "1"),
    ("you", "you", "sine", "Plur", "2"),
)
SUBORDINATORS = {"when": "kunne", "because": "sille", "although": "vaikko", "if": "joso"}
