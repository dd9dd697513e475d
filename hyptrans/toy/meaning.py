"""Meanings of the toy language: small trees of phrases without word order.

:mod:`hyptrans.toy.english` and :mod:`hyptrans.toy.tovari` say them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hyptrans.toy.lexicon import Adjective, Noun, Preposition, Verb


@dataclass(eq=False)
class NounPhrase:
    """A noun, a name or a pronoun with all that belongs to it."""

    noun: Noun
    plural: bool = False
    pronoun: tuple[str, str, str, str, str] | None = None
    determiner: str = ""
    quantifier: str = ""
    adjectives: list[Adjective] = field(default_factory=list)
    phrase: PrepositionalPhrase | None = None
    relative: Clause | None = None
    second: NounPhrase | None = None

    @property
    def person(self) -> str:
        """The person its verb agrees with: 1, 2 or 3."""
        return self.pronoun[4] if self.pronoun else "3"

    @property
    def many(self) -> bool:
        """Whether its verb is in the plural."""
        return self.plural or self.second is not None

    @property
    def has_clause(self) -> bool:
        """Whether a relative clause is somewhere inside."""
        return bool(
            self.relative
            or (self.phrase and self.phrase.inner.has_clause)
            or (self.second and self.second.has_clause)
        )


@dataclass(eq=False)
class PrepositionalPhrase:
    """A preposition and its noun phrase."""

    preposition: Preposition
    inner: NounPhrase


@dataclass(eq=False)
class Clause:
    """A verb, or ``olo``/``be`` with a predicate, and what belongs to it.

    ``gap`` names the part that a relative clause leaves to its noun. ``second`` is a coordinated
    clause; without a subject of its own it shares this one's.
    """

    verb: Verb
    tense: str
    subject: NounPhrase | None = None
    object: NounPhrase | None = None
    predicate: Adjective | None = None
    complement: Clause | None = None
    wanted: Clause | None = None
    phrases: list[PrepositionalPhrase] = field(default_factory=list)
    negative: bool = False
    manner: tuple[str, str] | None = None
    time: tuple[str, str] | None = None
    gap: str = ""
    second: Clause | None = None
    subordinator: str = ""
    subordinate: Clause | None = None
