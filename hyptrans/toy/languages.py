"""Express a meaning in English and in Tovari, an invented head-final language.

English puts the verb after its subject and modifiers after the noun, and has prepositions. In
Tovari the verb comes last, modifiers precede their noun, case endings and postpositions replace
prepositions, objects are marked if they are people or animals, the verb of a relative clause is a
participle, and endings harmonize with the vowels of their stem.
"""

from __future__ import annotations

from hyptrans.toy.grammar import Node
from hyptrans.toy.lexicon import DETERMINERS
from hyptrans.toy.trees import Word

CASES = {
    **{"nom": "", "acc": "m", "gen": "nA"},
    **{"loc": "ssA", "ill": "vAn", "abl": "stA"},
}
TENSES = {"Pres": "pA", "Past": "vi"}
PARTICIPLES = {
    ("nsubj", "Pres"): "jA",
    ("nsubj", "Past"): "nnA",
    ("obj", "Pres"): "lmA",
    ("obj", "Past"): "ttu",
}
RELATIONS = {"ADJ": "amod", "NUM": "nummod", "ADV": "advmod", "ADP": "case", "CCONJ": "cc"}


def english(node: Node) -> Word:
    """Return the English sentence of a meaning."""
    return _sentence(_english_clause(node), node)


def tovari(node: Node) -> Word:
    """Return the Tovari sentence of a meaning."""
    return _sentence(_tovari_clause(node), node)


def ending(stem: str, *endings: str) -> str:
    """Add endings to a stem; ``A`` becomes ``a`` after a back stem and ``e`` after a front one."""
    vowel = "a" if set("aou") & set(stem) else "e"
    return stem + "".join(endings).replace("A", vowel)


def _sentence(root: Word, node: Node) -> Word:
    """Add the full stop, and a comma after an initial clause."""
    root.after.append(Word(".", ".", "PUNCT", "punct", (id(node), "stop")))
    if node.part("advcl"):
        root.before[0].after.append(Word(",", ",", "PUNCT", "punct", (id(node), "comma")))
    return root


def _number(plural: bool) -> dict[str, str]:
    return {"Number": "Plur" if plural else "Sing"}


def _upos(node: Node) -> str:
    return "PROPN" if node.lexeme.kind == "name" else "NOUN"


def _modifiers(node: Node, side: int) -> list[Word]:
    """Return determiner, quantifiers, adjectives or adverbs; ``side``: 0 English, 1 Tovari."""
    words = []
    if form := (node.determiner, DETERMINERS.get(node.determiner, ""))[side]:
        words.append(Word(form, form, "DET", "det", (id(node), "determiner")))
    for i, lexeme in enumerate(node.modifiers):
        form = (lexeme.forms[0], lexeme.stem)[side]
        words.append(Word(form, form, lexeme.kind, RELATIONS[lexeme.kind], (id(node), f"{i}")))
    return words


def _link(node: Node, form: str) -> list[Word]:
    """Return the word that links a part to its head."""
    if not node.link or not form:
        return []
    upos = node.link.kind
    return [Word(form, form, upos, RELATIONS.get(upos, "mark"), (id(node), "link"))]


def _english_noun(node: Node) -> Word:
    forms = node.lexeme.forms
    head = Word(forms[node.plural], forms[0], _upos(node), node.role, (id(node), "head"))
    head.feats = _number(node.plural)
    head.before = _modifiers(node, 0)
    if node.determiner == "a" and (*head.before[1:], head)[0].form[0] in "aeiou":
        head.before[0].form = "an"
    for part in node.parts:
        head.after.append(_english_clause(part, node) if part.tense else _english_noun(part))
    head.before = _link(node, node.link.forms[0] if node.link else "") + head.before
    return head


def _english_clause(node: Node, noun: Node | None = None) -> Word:
    """Return a clause; ``noun`` is the noun that a relative clause modifies."""
    agreeing = node.part("nsubj") or noun
    assert agreeing is not None
    third = not agreeing.plural
    base, third_form, past = node.lexeme.forms
    form = past if node.tense == "Past" else third_form if third else base
    feats = {"Tense": node.tense}
    head = Word(base if node.negative else form, base, "VERB", node.role, (id(node), "head"), feats)
    if noun:
        who = "who" if noun.lexeme.animate else "which"
        head.before.append(Word(who, who, "PRON", node.gap, (id(node), "who"), {"PronType": "Rel"}))
    for part in node.parts:
        said = _english_clause(part) if part.tense else _english_noun(part)
        (head.before if part.role in ("nsubj", "advcl") else head.after).append(said)
    # a subordinate clause comes first
    head.before.sort(key=lambda word: word.deprel != "advcl")
    if node.negative:
        do = "did" if node.tense == "Past" else "does" if third else "do"
        head.before.append(Word(do, "do", "AUX", "aux", (id(node), "aux"), feats))
        head.before.append(Word("not", "not", "PART", "advmod", (id(node), "not")))
    head.before += _modifiers(node, 0)
    head.before = _link(node, node.link.forms[0] if node.link else "") + head.before
    return head


def _tovari_noun(node: Node, case: str) -> Word:
    lexeme, after = node.lexeme, ""
    if node.link:
        case, after = node.link.stem, node.link.forms[1].replace("-", "")
    elif case == "acc" and not lexeme.animate:
        case = "nom"
    # after a quantifier the noun stays singular
    plural = node.plural and not any(word.kind == "NUM" for word in node.modifiers)
    # the modifier of a noun ends in r: on its postposition, if any, else on the modifier itself
    mark = "r" if node.role == "nmod" else ""
    form = ending(lexeme.stem, "tA" if plural else "", CASES[case], "" if after else mark)
    head = Word(form, lexeme.stem, _upos(node), node.role, (id(node), "head"))
    head.feats = {"Case": case.capitalize(), **_number(plural)}
    for part in node.parts:
        head.before.append(_tovari_clause(part) if part.tense else _tovari_noun(part, "gen"))
    head.before += _modifiers(node, 1)
    head.after += _link(node, ending(after, mark) if after else "")
    return head


def _tovari_clause(node: Node) -> Word:
    subject = node.part("nsubj")
    endings = ["mA"] if node.negative else []
    endings.append(PARTICIPLES[node.gap, node.tense] if node.gap else TENSES[node.tense])
    endings.append("t" if subject and subject.plural and not node.gap else "")
    stem, role = node.lexeme.stem, "acl" if node.gap else node.role
    feats = {"Tense": node.tense, **({"VerbForm": "Part"} if node.gap else {})}
    head = Word(ending(stem, *endings), stem, "VERB", role, (id(node), "head"), feats)
    for role in ("advcl", "nsubj", "obl", "obj", "ccomp", "conj"):
        for part in (part for part in node.parts if part.role == role):
            # a relative clause has a participle, whose subject is in the genitive
            subject_case = "gen" if node.gap else "nom"
            case = subject_case if role == "nsubj" else "acc"
            said = _tovari_clause(part) if part.tense else _tovari_noun(part, case)
            (head.after if role == "conj" else head.before).append(said)
    head.before += _modifiers(node, 1)
    link = _link(node, node.link.stem if node.link else "")
    # a conjunction precedes its clause, a subordinator follows it
    if node.role == "conj":
        head.before = link + head.before
    else:
        head.after += link
    return head
