"""Draw meanings of the toy language at random.

No English sentence is ambiguous: a preposition belongs either to nouns or to verbs; a noun has one
phrase or clause after it; in a clause, only the last part may contain a clause of its own, besides
the subject, which the verb closes.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from hyptrans.toy import lexicon
from hyptrans.toy.lexicon import Lexeme

T = TypeVar("T")

OBJECTS = (lexicon.PERSONS, lexicon.THINGS, lexicon.THINGS, lexicon.PLACES)
DETERMINERS = ("the",) * 6 + ("a",) * 4 + ("this", "that", "every", "no")
NO_CLAUSE = -1
"""The depth at which a noun takes no relative clause."""


@dataclass(eq=False)
class Node:
    """A part of a meaning, a noun phrase or a clause, without word order."""

    role: str  # its relation in Universal Dependencies
    link: Lexeme | None = None  # the preposition of a noun or the conjunction of a clause
    lexeme: Lexeme = field(init=False)  # the noun or verb
    modifiers: list[Lexeme] = field(default_factory=list)  # adjectives, quantifiers and adverbs
    parts: list[Node] = field(default_factory=list)  # its parts, in English order
    plural: bool = False  # whether a noun is plural
    determiner: str = ""  # English determiner of a noun
    tense: str = ""  # tense of a clause
    negative: bool = False  # whether a clause is negated
    gap: str = ""  # the role in a relative clause that its noun fills

    def part(self, role: str) -> Node | None:
        """Return the first part with this role."""
        return next((part for part in self.parts if part.role == role), None)


class Sampler:
    """Draws meanings; the same seed gives the same meanings.

    It uses only ``random.Random.random``, whose sequence Python guarantees across versions.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def _pick(self, items: Sequence[T], skew: float = 1.0) -> T:
        # a skew makes early words more frequent, as in real text, but still draws the last ones
        return items[int(len(items) * self._random.random() ** skew)]

    def sentence(self) -> Node:
        """Draw a whole sentence."""
        kind = self._random.random()
        if kind > 0.26:
            return self._clause(Node("root"), 2)
        coordinated = kind < 0.12
        clause = self._clause(Node("root"), 1, open_end=not coordinated)
        link = lexicon.AND if coordinated else self._pick(lexicon.SUBORDINATORS)
        clause.parts.append(self._clause(Node("conj" if coordinated else "advcl", link), 1))
        return clause

    def _clause(self, clause: Node, depth: int, *, open_end: bool = True) -> Node:
        """Draw the rest of a clause; with ``open_end`` its last part may nest ``depth`` clauses."""
        kinds = [lexicon.TRANSITIVE] * 4
        kinds += [lexicon.INTRANSITIVE] * 2 if clause.gap != "obj" else []
        kinds += [lexicon.SAYING] * 2 if open_end and depth > 0 and clause.gap != "obj" else []
        kind = self._pick(kinds)
        clause.lexeme, clause.tense = self._pick(kind, 1.3), self._pick(("Past", "Pres"))
        if clause.gap != "nsubj":
            clause.parts.append(self._noun(Node("nsubj"), depth - 1, [lexicon.PERSONS], 0.25))
        if kind is lexicon.SAYING:
            clause.parts.append(self._clause(Node("ccomp", lexicon.THAT), depth - 1))
        else:
            self._complements(clause, depth if open_end else NO_CLAUSE)
        if self._chance(0.12):
            clause.negative = True
        elif self._chance(0.2):
            clause.modifiers.append(self._pick(lexicon.ADVERBS))
        return clause

    def _complements(self, clause: Node, depth: int) -> None:
        """Draw the object of a clause, unless that is its gap, and its phrases."""
        transitive = clause.lexeme.kind == "transitive"
        phrases = []
        if self._chance(0.25 if transitive else 0.6):
            phrases = [(lexicon.OF_PLACES, lexicon.PLACES), (lexicon.OF_EVENTS, lexicon.EVENTS)]
            phrases = phrases[: 1 + self._chance(0.3)][self._chance(0.3) :]
        if transitive and clause.gap != "obj":
            inside = NO_CLAUSE if phrases else depth - 1
            clause.parts.append(self._noun(Node("obj"), inside, OBJECTS, 0.15))
        for i, (links, nouns) in enumerate(phrases, 1):
            inside = depth - 1 if i == len(phrases) else NO_CLAUSE
            clause.parts.append(self._noun(Node("obl", self._pick(links)), inside, [nouns]))

    def _noun(
        self, noun: Node, depth: int, kinds: Sequence[Sequence[Lexeme]], name: float = 0.0
    ) -> Node:
        """Draw the rest of a noun phrase, with up to ``depth`` nested relative clauses.

        It is a name with probability ``name``, else a noun of one of ``kinds``.
        """
        if self._chance(name):
            noun.lexeme = self._pick(lexicon.NAMES)
            return noun
        noun.lexeme, noun.plural = self._pick(self._pick(kinds), 1.3), self._chance(0.3)
        if not noun.plural:
            noun.determiner = self._pick(DETERMINERS)
        elif self._chance(0.35):
            noun.modifiers.append(self._pick(lexicon.QUANTIFIERS))
        elif self._chance(0.6):
            noun.determiner = "the"
        if self._chance(0.3):
            noun.modifiers.append(self._pick(lexicon.ADJECTIVES, 1.3))
        drawn = self._random.random()
        if drawn < 0.17:
            inner = Node("nmod", self._pick(lexicon.OF_NOUNS))
            noun.parts.append(self._noun(inner, depth - 1, OBJECTS))
        elif drawn < 0.36 and depth > NO_CLAUSE:
            # things do not act: they are the object of their relative clause
            gap = "nsubj" if noun.lexeme.animate and self._chance(0.6) else "obj"
            relative = Node("acl:relcl", gap=gap)
            noun.parts.append(self._clause(relative, depth - 1, open_end=depth > 0))
        return noun
