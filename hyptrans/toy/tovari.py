"""Says a meaning of the toy grammar in Tovari, an invented language with the head at the end.

The verb comes last, modifiers precede their noun, case endings and postpositions stand for
prepositions, ``the`` has no counterpart, people and animals are marked as objects (but where they
are joined to a thing before them), the verb of a relative clause is a participle, and endings
follow the vowels of their stem.
"""

from __future__ import annotations

from hyptrans.toy.lexicon import BE, DETERMINERS, QUANTIFIERS, SUBORDINATORS
from hyptrans.toy.meaning import Clause, NounPhrase, PrepositionalPhrase
from hyptrans.toy.sentence import Words, adverb, coordinate, sentence
from hyptrans.toy.trees import Word, number

CASES = {
    "nom": ("", "Nom"),
    "acc": ("m", "Acc"),
    "gen": ("nA", "Gen"),
    "dat": ("llA", "Dat"),
    "loc": ("ssA", "Loc"),
    "ill": ("vAn", "Ill"),
    "abl": ("stA", "Abl"),
    "ins": ("kkA", "Ins"),
}
PLURAL = "tA"
ATTRIBUTIVE = "r"
NEGATIVE = "mA"
INFINITIVE = "dA"
TENSES = {"Pres": "pA", "Past": "vi", "Fut": "rmA"}
PARTICIPLES = {
    ("subject", "Pres"): "jA",
    ("subject", "Past"): "nnA",
    ("object", "Pres"): "lmA",
    ("object", "Past"): "ttu",
}
PERSON_ENDINGS = {("1", False): "n", ("1", True): "mme", ("2", True): "tte", ("3", True): "t"}


def tovari(meaning: Clause) -> Word:
    """The Tovari sentence of a meaning."""
    time = meaning.time[1] if meaning.time else ""
    words = Words(time, "jo", SUBORDINATORS.get(meaning.subordinator, ""))
    return sentence(meaning, _clause, words, subordinator_first=False)


def ending(stem: str, *endings: str) -> str:
    """The stem with endings, whose ``A`` is ``a`` after a back stem and ``e`` after a front one."""
    vowel = "a" if set("aou") & set(stem) else "e"
    return stem + "".join(endings).replace("A", vowel)


def _clause(clause: Clause, deprel: str, *, shared: NounPhrase | None = None) -> Word:
    head = _head(clause, deprel, clause.subject or shared)
    if clause.subject:
        # a noun's clause is a participle, whose subject is in the genitive
        case = "gen" if clause.gap else "nom"
        head.before.append(_noun(clause.subject, "nsubj", case))
    head.before += [_phrase(phrase, "obl") for phrase in reversed(clause.phrases)]
    if clause.object:
        head.before.append(_noun(clause.object, "obj", _object_case(clause, clause.object)))
    if clause.complement:
        said = _clause(clause.complement, "ccomp")
        said.after.append(Word("ette", "ette", "SCONJ", "mark", (id(clause), "that")))
        head.before.append(said)
    if clause.wanted:
        head.before.append(_clause(clause.wanted, "xcomp"))
    if clause.manner:
        head.before.append(adverb(clause, "manner", clause.manner[1]))
    return head


def _object_case(clause: Clause, phrase: NounPhrase) -> str:
    if clause.verb.case == "dat":
        return "dat"
    return "acc" if phrase.noun.animate else "nom"


def _head(clause: Clause, deprel: str, subject: NounPhrase | None) -> Word:
    """The verb, or the predicate with ``olo`` after it."""
    verb = clause.verb
    stem = verb.clause_stem if clause.complement else verb.stem
    endings = [NEGATIVE] if clause.negative else []
    feats = {"Polarity": "Neg"} if clause.negative else {}
    if clause.tense == "Inf":
        endings.append(INFINITIVE)
        feats["VerbForm"] = "Inf"
    elif clause.gap:
        endings.append(PARTICIPLES[clause.gap, clause.tense])
        feats |= {"Tense": clause.tense, "VerbForm": "Part"}
    elif subject:
        endings += [TENSES[clause.tense], PERSON_ENDINGS.get((subject.person, subject.many), "")]
        feats |= {"Tense": clause.tense, "Person": subject.person, **number(subject.many)}
    form = ending(stem, *endings)
    if clause.predicate is None:
        return Word(form, stem, "VERB", deprel, (id(clause), "verb"), feats)
    animate = subject.noun.animate if subject else True
    adjective = clause.predicate.animate_stem if animate else clause.predicate.other_stem
    copula = Word(form, BE.stem, "AUX", "cop", (id(clause), "verb"), feats)
    return Word(adjective, adjective, "ADJ", deprel, (id(clause), "predicate"), {}, after=[copula])


def _noun(phrase: NounPhrase, deprel: str, case: str, *, attributive: bool = False) -> Word:
    noun = phrase.noun
    suffix, name = CASES[case]
    # after a quantifier the noun stays in the singular; a pronoun's stem has its number already
    plural = phrase.plural and not phrase.quantifier and not phrase.pronoun
    endings = [PLURAL if plural else "", suffix, ATTRIBUTIVE if attributive else ""]
    upos = "PRON" if phrase.pronoun else "PROPN" if noun.kind == "name" else "NOUN"
    feats = {"Case": name, **number(plural or (bool(phrase.pronoun) and phrase.plural))}
    form = ending(noun.stem, *endings)
    head = Word(form, noun.stem, upos, deprel, (id(phrase), "noun"), feats)
    if phrase.relative:
        head.before.append(_clause(phrase.relative, "acl", shared=phrase))
    if phrase.phrase:
        head.before.append(_phrase(phrase.phrase, "nmod", attributive=True))
    head.before += _before_noun(phrase)
    if phrase.second:
        second_case = "nom" if case == "acc" and not phrase.second.noun.animate else case
        second = _noun(phrase.second, "conj", second_case)
        coordinate(phrase, head, "jo", second)
    return head


def _before_noun(phrase: NounPhrase) -> list[Word]:
    words = []
    if form := DETERMINERS.get(phrase.determiner, ""):
        words.append(Word(form, form, "DET", "det", (id(phrase), "determiner")))
    if phrase.quantifier:
        form = QUANTIFIERS[phrase.quantifier]
        words.append(Word(form, form, "NUM", "nummod", (id(phrase), "quantifier")))
    for i, adjective in enumerate(phrase.adjectives):
        form = adjective.animate_stem if phrase.noun.animate else adjective.other_stem
        words.append(Word(form, form, "ADJ", "amod", (id(phrase), f"adjective {i}")))
    return words


def _phrase(phrase: PrepositionalPhrase, deprel: str, *, attributive: bool = False) -> Word:
    """The noun in its case, with a postposition if the preposition asks for one.

    What belongs to a noun ends in ``r``: on the postposition, else on the noun itself.
    """
    preposition = phrase.preposition
    after = preposition.postposition
    head = _noun(phrase.inner, deprel, preposition.case, attributive=attributive and not after)
    if after:
        form = ending(after, ATTRIBUTIVE) if attributive else after
        head.after.append(Word(form, after, "ADP", "case", (id(phrase), "case")))
    return head
