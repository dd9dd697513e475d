"""Says a meaning of the toy grammar in English: subject, verb, object, modifiers after the noun."""

from __future__ import annotations

from hyptrans.toy.lexicon import BE
from hyptrans.toy.meaning import Clause, NounPhrase, PrepositionalPhrase
from hyptrans.toy.sentence import Words, adverb, coordinate, sentence
from hyptrans.toy.trees import Word, number

QUANTIFIER_TAGS = {"many": ("ADJ", "amod"), "few": ("ADJ", "amod")}


def english(meaning: Clause) -> Word:
    """The English sentence of a meaning."""
    time = meaning.time[0] if meaning.time else ""
    words = Words(time, "and", meaning.subordinator)
    return sentence(meaning, _clause, words, subordinator_first=True)


def _clause(
    clause: Clause, deprel: str, *, shared: NounPhrase | None = None, relative: Word | None = None
) -> Word:
    """``shared``: a subject named elsewhere; ``relative``: the relative pronoun, the first word."""
    agreeing = clause.subject or shared
    helpers, head = _verb(clause, agreeing)
    head.deprel = deprel
    if relative:
        head.before.append(relative)
    if clause.subject:
        head.before.append(_noun(clause.subject, "nsubj"))
    head.before += helpers
    if clause.object:
        head.after.append(_noun(clause.object, "obj"))
    head.after += [_phrase(phrase, "obl") for phrase in clause.phrases]
    if clause.wanted:
        wanted = _clause(clause.wanted, "xcomp")
        wanted.before.insert(0, Word("to", "to", "PART", "mark", (id(clause.wanted), "to")))
        head.after.append(wanted)
    if clause.complement:
        said = _clause(clause.complement, "ccomp")
        said.before.insert(0, Word("that", "that", "SCONJ", "mark", (id(clause), "that")))
        head.after.append(said)
    return head


def _verb(clause: Clause, agreeing: NounPhrase | None) -> tuple[list[Word], Word]:
    """The words between subject and head, and the head: the verb, or the predicate of ``be``."""
    verb, origin = clause.verb, (id(clause), "verb")
    feats = {"Tense": clause.tense} if clause.tense != "Inf" else {"VerbForm": "Inf"}
    third = agreeing is not None and not agreeing.many and agreeing.person == "3"
    helpers: list[Word] = []
    if verb is BE:
        form = _form_of_be(clause.tense, agreeing)
    elif clause.tense == "Pres" and third and not clause.negative:
        form = verb.third
    else:
        form = verb.past if clause.tense == "Past" and not clause.negative else verb.base
    if clause.tense == "Fut":
        helpers.append(Word("will", "will", "AUX", "aux", (id(clause), "aux")))
    elif clause.negative and verb is not BE:
        do = {"Past": "did", "Pres": "does" if third else "do"}[clause.tense]
        helpers.append(Word(do, "do", "AUX", "aux", (id(clause), "aux"), feats))
    if verb is BE:
        assert clause.predicate is not None
        be = Word(form, "be", "AUX", "cop", origin, feats)
        helpers.append(be)
        adjective = clause.predicate.form
        head = Word(adjective, adjective, "ADJ", "", (id(clause), "predicate"), {"Degree": "Pos"})
    else:
        head = Word(form, verb.base, "VERB", "", origin, feats)
    if clause.negative:
        helpers.append(Word("not", "not", "PART", "advmod", (id(clause), "not")))
    if clause.manner:
        helpers.append(adverb(clause, "manner", clause.manner[0]))
    return helpers, head


def _form_of_be(tense: str, agreeing: NounPhrase | None) -> str:
    assert agreeing is not None
    if tense == "Fut":
        return "be"
    if agreeing.many:
        return "were" if tense == "Past" else "are"
    if tense == "Past":
        return "was"
    return "am" if agreeing.person == "1" else "is"


def _noun(phrase: NounPhrase, deprel: str) -> Word:
    """A noun phrase; only a subject's pronoun is in the nominative (none is a second conjunct)."""
    origin = (id(phrase), "noun")
    if phrase.pronoun:
        form = phrase.pronoun[0 if deprel == "nsubj" else 1]
        case = "Nom" if deprel == "nsubj" else "Acc"
        feats = {"Case": case, "Person": phrase.person, **number(phrase.plural)}
        head = Word(form, phrase.pronoun[0], "PRON", deprel, origin, feats)
    else:
        noun = phrase.noun
        upos = "PROPN" if noun.kind == "name" else "NOUN"
        form = noun.plural if phrase.plural else noun.singular
        head = Word(form, noun.singular, upos, deprel, origin, number(phrase.plural))
    head.before = _before_noun(phrase)
    if phrase.phrase:
        head.after.append(_phrase(phrase.phrase, "nmod"))
    if phrase.relative:
        head.after.append(_relative(phrase))
    if phrase.second:
        second = _noun(phrase.second, "conj")
        coordinate(phrase, head, "and", second)
    return head


def _relative(phrase: NounPhrase) -> Word:
    assert phrase.relative is not None
    form = "who" if phrase.noun.animate else "that"
    deprel = "nsubj" if phrase.relative.gap == "subject" else "obj"
    pronoun = Word(form, form, "PRON", deprel, (id(phrase), "who"), {"PronType": "Rel"})
    # agreement is with this noun alone: the clause belongs to the last of coordinated nouns
    return _clause(phrase.relative, "acl:relcl", shared=phrase, relative=pronoun)


def _phrase(phrase: PrepositionalPhrase, deprel: str) -> Word:
    head = _noun(phrase.inner, deprel)
    form = phrase.preposition.form
    head.before.insert(0, Word(form, form, "ADP", "case", (id(phrase), "case")))
    return head


def _before_noun(phrase: NounPhrase) -> list[Word]:
    words = []
    if phrase.determiner:
        form = phrase.determiner
        words.append(Word(form, form, "DET", "det", (id(phrase), "determiner")))
    if phrase.quantifier:
        form = phrase.quantifier
        upos, deprel = QUANTIFIER_TAGS.get(form, ("NUM", "nummod"))
        words.append(Word(form, form, upos, deprel, (id(phrase), "quantifier")))
    for i, adjective in enumerate(phrase.adjectives):
        feats = {"Degree": "Pos"}
        form = adjective.form
        words.append(Word(form, form, "ADJ", "amod", (id(phrase), f"adjective {i}"), feats))
    following = words[1].form if words[1:] else phrase.noun.singular
    if phrase.determiner == "a" and following[0] in "aeiou":
        words[0].form = "an"
    return words
