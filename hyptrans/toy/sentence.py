"""What English and Tovari sentences have in common: the order of their clauses."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from hyptrans.toy.meaning import Clause, NounPhrase
from hyptrans.toy.trees import Word, comma, full_stop


class Words(NamedTuple):
    """What a sentence has besides its clauses: an adverb of time, and the words that join them."""

    time: str
    conjunction: str
    subordinator: str


def sentence(
    meaning: Clause, clause: Callable[..., Word], words: Words, *, subordinator_first: bool
) -> Word:
    """The sentence of a meaning: a subordinate clause, the main one, one that is coordinated.

    Args:
        meaning: what to say.
        clause: says a clause, given its relation and the subject it shares with another one.
        words: those that the meaning needs, in the language.
        subordinator_first: it opens the subordinate clause, else it ends it.
    """
    root = clause(meaning, "root")
    if meaning.time:
        root.before.insert(0, adverb(meaning, "time", words.time))
    if meaning.second:
        second = clause(meaning.second, "conj", shared=meaning.subject)
        coordinate(meaning, root, words.conjunction, second)
    if meaning.subordinate:
        added = clause(meaning.subordinate, "advcl")
        form = words.subordinator
        mark = Word(form, form, "SCONJ", "mark", (id(meaning), "mark"))
        added.before.insert(0, mark) if subordinator_first else added.after.append(mark)
        comma(added)
        root.before.insert(0, added)
    return full_stop(root)


def adverb(clause: Clause, role: str, form: str) -> Word:
    """An adverb of a clause."""
    return Word(form, form, "ADV", "advmod", (id(clause), role))


def coordinate(meaning: Clause | NounPhrase, first: Word, conjunction: str, second: Word) -> None:
    """Hang the second part of a meaning on the first, a conjunction between them."""
    second.before.insert(0, Word(conjunction, conjunction, "CCONJ", "cc", (id(meaning), "and")))
    first.after.append(second)
