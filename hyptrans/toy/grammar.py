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
    """A part of a meaning, a noun phrase or a clause, without word order.

    Attributes:
        lexeme: the noun or verb.
        role: its relation in Universal Dependencies.
        link: the preposition of a noun or the conjunction of a clause.
        plural: whether a noun is plural.
        determiner: English determiner of a noun.
        modifiers: adjectives, quantifiers and adverbs.
        tense: tense of a clause.
        negative: whether a clause is negated.
        gap: the role in a relative clause that its noun fills.
        parts: its parts, in English order.
    """

    lexeme: Lexeme
    role: str
    link: Lexeme | None = None
    plural: bool = False
    determiner: str = ""
    modifiers: list[Lexeme] = field(default_factory=list)
    tense: str = ""
    negative: bool = False
    gap: str = ""
    parts: list[Node] = field(default_factory=list)

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
            return self._clause("root", 2)
        coordinated = kind < 0.12
        clause = self._clause("root", 1, open_end=not coordinated)
        link = lexicon.AND if coordinated else self._pick(lexicon.SUBORDINATORS)
        clause.parts.append(self._clause("conj" if coordinated else "advcl", 1, link=link))
        return clause

    def _clause(
        self,
        role: str,
        depth: int,
        *,
        open_end: bool = True,
        gap: str = "",
        link: Lexeme | None = None,
    ) -> Node:
        """Draw a clause; with ``open_end`` its last part may nest up to ``depth`` clauses."""
        kinds = [lexicon.TRANSITIVE] * 4
        kinds += [lexicon.INTRANSITIVE] * 2 if gap != "obj" else []
        kinds += [lexicon.SAYING] * 2 if open_end and depth > 0 and gap != "obj" else []
        kind = self._pick(kinds)
        clause = Node(self._pick(kind, 1.3), role, link, gap=gap)
        clause.tense = self._pick(("Past", "Pres"))
        if gap != "nsubj":
            clause.parts.append(self._noun("nsubj", depth - 1, [lexicon.PERSONS], name=0.25))
        if kind is lexicon.SAYING:
            clause.parts.append(self._clause("ccomp", depth - 1, link=lexicon.THAT))
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
            clause.parts.append(self._noun("obj", inside, OBJECTS, name=0.15))
        for i, (links, nouns) in enumerate(phrases):
            inside = depth - 1 if i == len(phrases) - 1 else NO_CLAUSE
            link = self._pick(links)
            clause.parts.append(self._noun("obl", inside, [nouns], link=link))

    def _noun(
        self,
        role: str,
        depth: int,
        kinds: Sequence[Sequence[Lexeme]],
        *,
        name: float = 0.0,
        link: Lexeme | None = None,
    ) -> Node:
        """Draw a noun phrase.

        Args:
            role: its relation.
            depth: how many relative clauses may still be nested in it.
            kinds: kinds of nouns to choose from.
            name: probability of a name.
            link: its preposition.
        """
        if self._chance(name):
            return Node(self._pick(lexicon.NAMES), role, link)
        noun = Node(self._pick(self._pick(kinds), 1.3), role, link, plural=self._chance(0.3))
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
            inner = self._noun("nmod", depth - 1, OBJECTS, link=self._pick(lexicon.OF_NOUNS))
            noun.parts.append(inner)
        elif drawn < 0.36 and depth > NO_CLAUSE:
            # things do not act: they are the object of their relative clause
            gap = "nsubj" if noun.lexeme.animate and self._chance(0.6) else "obj"
            noun.parts.append(self._clause("acl:relcl", depth - 1, open_end=depth > 0, gap=gap))
        return noun
