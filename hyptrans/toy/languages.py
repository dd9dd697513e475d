"""Express a meaning in English and in Tovari, an invented head-final language, as gold trees.

English puts the verb after its subject and modifiers after the noun, and has prepositions. In
Tovari the verb comes last, modifiers precede their noun, case endings and postpositions replace
prepositions, objects are marked if they are people or animals, the verb of a relative clause is a
participle, and endings harmonize with the vowels of their stem.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from hyptrans.toy.grammar import Node
from hyptrans.toy.lexicon import DETERMINERS

CASES = {"nom": "", "acc": "m", "gen": "nA", "loc": "ssA", "ill": "vAn", "abl": "stA"}
TENSES = {"Pres": "pA", "Past": "vi"}
PARTICIPLES = {"nsubj": {"Pres": "jA", "Past": "nnA"}, "obj": {"Pres": "lmA", "Past": "ttu"}}
RELATIONS = {"ADJ": "amod", "NUM": "nummod", "ADV": "advmod", "ADP": "case", "CCONJ": "cc"}


@dataclass(eq=False)
class Word:
    """A word with its left and right dependents; the root holds the whole tree."""

    form: str
    lemma: str
    upos: str
    deprel: str
    before: list[Word] = field(default_factory=list)
    after: list[Word] = field(default_factory=list)

    def in_order(self) -> Iterator[Word]:
        """Yield all words from left to right; the tree is projective by construction."""
        for word in self.before:
            yield from word.in_order()
        yield self
        for word in self.after:
            yield from word.in_order()


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
    root.after.append(Word(".", ".", "PUNCT", "punct"))
    if node.part("advcl"):
        root.before[0].after.append(Word(",", ",", "PUNCT", "punct"))
    return root


def _noun(node: Node, form: str, lemma: str) -> Word:
    return Word(form, lemma, "PROPN" if node.lexeme.kind == "name" else "NOUN", node.role)


def _modifiers(node: Node, side: int) -> list[Word]:
    """Return determiner, quantifiers, adjectives or adverbs; ``side``: 0 English, 1 Tovari."""
    words = []
    if form := (node.determiner, DETERMINERS.get(node.determiner, ""))[side]:
        words.append(Word(form, form, "DET", "det"))
    for lexeme in node.modifiers:
        form = (lexeme.forms[0], lexeme.stem)[side]
        words.append(Word(form, form, lexeme.kind, RELATIONS[lexeme.kind]))
    return words


def _link(node: Node, form: str = "") -> list[Word]:
    """Return the word that links a part to its head, in English by default."""
    if not node.link:
        return []
    form = form or node.link.forms[0]
    return [Word(form, form, node.link.kind, RELATIONS.get(node.link.kind, "mark"))]


def _english_noun(node: Node) -> Word:
    forms = node.lexeme.forms
    head = _noun(node, forms[node.plural], forms[0])
    head.before = _modifiers(node, 0)
    if node.determiner == "a" and (*head.before[1:], head)[0].form[0] in "aeiou":
        head.before[0].form = "an"
    for part in node.parts:
        head.after.append(_english_clause(part, node) if part.tense else _english_noun(part))
    head.before = _link(node) + head.before
    return head


def _english_clause(node: Node, noun: Node | None = None) -> Word:
    """Return a clause; ``noun`` is the noun that a relative clause modifies."""
    agreeing = node.part("nsubj") or noun
    assert agreeing is not None
    third, past = not agreeing.plural, node.tense == "Past"
    base, third_form, past_form = node.lexeme.forms
    form = base if node.negative else past_form if past else third_form if third else base
    head = Word(form, base, "VERB", node.role)
    if noun:
        who = "who" if noun.lexeme.animate else "which"
        head.before.append(Word(who, who, "PRON", node.gap))
    for part in node.parts:
        said = _english_clause(part) if part.tense else _english_noun(part)
        (head.before if part.role in ("nsubj", "advcl") else head.after).append(said)
    # a subordinate clause comes first
    head.before.sort(key=lambda word: word.deprel != "advcl")
    if node.negative:
        do = "did" if past else "does" if third else "do"
        head.before += [Word(do, "do", "AUX", "aux"), Word("not", "not", "PART", "advmod")]
    head.before = [*_link(node), *head.before, *_modifiers(node, 0)]
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
    head = _noun(node, form, lexeme.stem)
    for part in node.parts:
        head.before.append(_tovari_clause(part) if part.tense else _tovari_noun(part, "gen"))
    head.before += _modifiers(node, 1)
    head.after += _link(node, ending(after, mark)) if after else []
    return head


def _tovari_clause(node: Node) -> Word:
    subject = node.part("nsubj")
    negation = "mA" if node.negative else ""
    tense = (PARTICIPLES[node.gap] if node.gap else TENSES)[node.tense]
    plural = "t" if subject and subject.plural and not node.gap else ""
    stem, deprel = node.lexeme.stem, "acl" if node.gap else node.role
    head = Word(ending(stem, negation, tense, plural), stem, "VERB", deprel)
    for role in ("advcl", "nsubj", "obl", "obj", "ccomp", "conj"):
        # a relative clause has a participle, whose subject is in the genitive
        case = "acc" if role != "nsubj" else "gen" if node.gap else "nom"
        for part in (part for part in node.parts if part.role == role):
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
