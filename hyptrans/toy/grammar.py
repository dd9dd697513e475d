"""How meanings of the toy language are drawn at random.

What is drawn here never lets an English sentence be read in two ways:

* a preposition belongs either to nouns or to verbs, and a noun has one phrase or clause after it,
  so that it belongs to the nearest noun;
* in a clause only the last part may contain a clause of its own, besides the subject, which its
  verb closes;
* the first of two coordinated parts has nothing after its head.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

from hyptrans.toy import lexicon
from hyptrans.toy.lexicon import Noun, Verb
from hyptrans.toy.meaning import Clause, NounPhrase, PrepositionalPhrase

T = TypeVar("T")

ANIMATE = ("person", "animal")
SUBJECTS = ("person", "person", "person", "animal")
SUBJECTS_OF_BE = ("person", "animal", "thing", "tool", "place")
OBJECTS = ("person", "animal", "thing", "thing", "tool", "place")
OWNERS = ("person", "person", "animal", "place")
NOUNS = {
    "person": lexicon.PERSONS,
    "animal": lexicon.ANIMALS,
    "thing": lexicon.THINGS,
    "tool": lexicon.TOOLS,
    "place": lexicon.PLACES,
    "event": lexicon.EVENTS,
}
DETERMINERS = ("the",) * 6 + ("a",) * 4 + ("this", "that", "every", "no")

NO_CLAUSE = -1  # the depth at which a noun phrase takes no relative clause


class Sampler:
    """Draws meanings; the same seed gives the same ones.

    Only ``random.Random.random`` is used, whose sequence Python guarantees between versions.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def _pick(self, items: Sequence[T], skew: float = 1.3) -> T:
        # the skew makes early words more frequent, as in real text, and keeps the last ones in use
        return items[int(len(items) * self._random.random() ** skew)]

    def _even(self, items: Sequence[T]) -> T:
        return self._pick(items, skew=1.0)

    def sentence(self) -> Clause:
        """A whole sentence."""
        kind = self._random.random()
        if kind < 0.14:
            subordinate = self._clause(depth=1)
            clause = self._clause(depth=1)
            clause.subordinator = self._even(tuple(lexicon.SUBORDINATORS))
            clause.subordinate = subordinate
            return clause
        if kind < 0.26:
            clause = self._clause(depth=1, open_end=False)
            clause.second = self._clause(depth=1)
            if self._chance(0.5):
                clause.second.subject = None
            return clause
        clause = self._clause(depth=2)
        if self._chance(0.15):
            clause.time = self._even(lexicon.TIMES)
        return clause

    def _clause(
        self,
        depth: int,
        *,
        open_end: bool = True,
        tense: str = "",
        gap: str = "",
        animate: bool = True,
    ) -> Clause:
        """A clause.

        ``open_end``: its last part may contain clauses; ``animate``: its subject is.
        """
        tense = tense or self._even(("Past", "Past", "Pres", "Pres", "Fut"))
        kinds = [
            "intransitive",
            "transitive",
            "transitive",
            "transitive",
            "dative",
            "giving",
            "known",
        ]
        if gap != "object":
            kinds += ["being"]
            # "they want to sleep and run" could be read in two ways
            kinds += ["wanting"] if open_end else []
            kinds += ["saying"] * 2 if open_end and depth > 0 else []
        else:
            kinds.remove("intransitive")
        clause = Clause(lexicon.BE, tense, gap=gap)
        kind = self._even(kinds) if animate else "being"
        if gap != "subject":
            subjects = SUBJECTS_OF_BE if kind == "being" else SUBJECTS
            clause.subject = self._noun_phrase(depth - 1, subjects, bare=0.35, coordinated=not gap)
        getattr(self, f"_{kind}")(clause, depth, open_end)
        if tense != "Fut" and self._chance(0.12):
            clause.negative = True
        elif self._chance(0.15):
            clause.manner = self._even(lexicon.MANNERS)
        return clause

    def _being(self, clause: Clause, depth: int, open_end: bool) -> None:
        clause.predicate = self._pick(lexicon.ADJECTIVES)

    def _intransitive(self, clause: Clause, depth: int, open_end: bool) -> None:
        clause.verb = self._pick(lexicon.INTRANSITIVE)
        if self._chance(0.6):
            clause.phrases = self._phrases(depth, open_end)

    def _transitive(self, clause: Clause, depth: int, open_end: bool) -> None:
        self._with_object(clause, self._pick(lexicon.TRANSITIVE), depth, open_end, phrases=0.25)

    def _dative(self, clause: Clause, depth: int, open_end: bool) -> None:
        self._with_object(
            clause, self._pick(lexicon.DATIVE), depth, open_end, phrases=0.2, kinds=ANIMATE
        )

    def _known(self, clause: Clause, depth: int, open_end: bool) -> None:
        verb = self._even(lexicon.NOUN_OR_CLAUSE)
        if open_end and depth > 0 and clause.gap != "object" and self._chance(0.5):
            clause.verb, clause.complement = verb, self._clause(depth - 1)
        else:
            self._with_object(clause, verb, depth, open_end, phrases=0.0)

    def _saying(self, clause: Clause, depth: int, open_end: bool) -> None:
        clause.verb = self._even(lexicon.SAYING)
        clause.complement = self._clause(depth - 1)

    def _giving(self, clause: Clause, depth: int, open_end: bool) -> None:
        self._with_object(
            clause, self._even(lexicon.GIVING), depth, False, phrases=0.0, kinds=("thing",)
        )
        receiver = self._noun_phrase(depth - 1 if open_end else NO_CLAUSE, ("person",))
        clause.phrases = [PrepositionalPhrase(lexicon.TO, receiver)]

    def _wanting(self, clause: Clause, depth: int, open_end: bool) -> None:
        clause.verb = self._even(lexicon.WANTING)
        clause.wanted = Clause(lexicon.BE, "Inf", gap="subject")
        kind = self._even((self._intransitive, self._transitive, self._transitive, self._giving))
        kind(clause.wanted, depth, open_end)

    def _with_object(
        self,
        clause: Clause,
        verb: Verb,
        depth: int,
        open_end: bool,
        *,
        phrases: float,
        kinds: Sequence[str] = OBJECTS,
    ) -> None:
        clause.verb = verb
        more = self._chance(phrases)
        if clause.gap != "object":
            inside = depth - 1 if open_end and not more else NO_CLAUSE
            bare = 0.0 if clause.verb in lexicon.GIVING else 0.25
            clause.object = self._noun_phrase(inside, kinds, bare=bare, coordinated=not more)
        if more:
            clause.phrases = self._phrases(depth, open_end)

    def _phrases(self, depth: int, open_end: bool) -> list[PrepositionalPhrase]:
        drawn = self._random.random()
        if drawn < 0.25:
            parts = [(lexicon.WITH, "tool")]
        elif drawn < 0.5:
            parts = [(self._even(lexicon.OF_VERBS_TIME), "event")]
        else:
            parts = [(self._even(lexicon.OF_VERBS_PLACE), "place")]
            if self._chance(0.2):
                parts.append((self._even(lexicon.OF_VERBS_TIME), "event"))
        last = len(parts) - 1
        return [
            PrepositionalPhrase(
                preposition,
                self._noun_phrase(depth - 1 if open_end and i == last else NO_CLAUSE, (kind,)),
            )
            for i, (preposition, kind) in enumerate(parts)
        ]

    def _noun_phrase(
        self, depth: int, kinds: Sequence[str], *, bare: float = 0.0, coordinated: bool = False
    ) -> NounPhrase:
        """A noun phrase; ``depth``: how many relative clauses may still be nested in it."""
        if self._chance(bare):
            phrase = self._pronoun_or_name()
        else:
            phrase = self._plain(self._even(kinds))
            self._modify(phrase, depth)
        if coordinated and not phrase.phrase and not phrase.relative and self._chance(0.12):
            phrase.second = self._plain(self._even(kinds))
            self._modify(phrase.second, depth)
        return phrase

    def _modify(self, phrase: NounPhrase, depth: int) -> None:
        drawn = self._random.random()
        if drawn < 0.17:
            preposition = self._even(lexicon.OF_NOUNS)
            kinds = {"of": OWNERS, "from": ("place",)}.get(preposition.form, OBJECTS)
            inner = self._noun_phrase(depth - 1, kinds)
            phrase.phrase = PrepositionalPhrase(preposition, inner)
        elif drawn < 0.36 and depth > NO_CLAUSE:
            phrase.relative = self._relative(phrase, depth)

    def _relative(self, phrase: NounPhrase, depth: int) -> Clause:
        animate = phrase.noun.animate
        gap = "subject" if self._chance(0.6 if animate else 0.2) else "object"
        tense = self._even(("Past", "Pres"))
        # things are, and have things done to them
        able = animate or gap == "object"
        return self._clause(depth - 1, open_end=depth > 0, tense=tense, gap=gap, animate=able)

    def _pronoun_or_name(self) -> NounPhrase:
        if self._chance(0.5):
            return NounPhrase(self._even(lexicon.NAMES))
        pronoun = self._even(lexicon.PRONOUNS)
        noun = Noun(pronoun[0], pronoun[0], pronoun[2], "name")
        return NounPhrase(noun, plural=pronoun[3] == "Plur", pronoun=pronoun)

    def _plain(self, kind: str) -> NounPhrase:
        phrase = NounPhrase(self._pick(NOUNS[kind]), plural=self._chance(0.3))
        drawn = self._random.random()
        if phrase.plural and drawn < 0.35:
            phrase.quantifier = self._even(tuple(lexicon.QUANTIFIERS))
        elif phrase.plural:
            phrase.determiner = "the" if drawn < 0.75 else ""
        else:
            phrase.determiner = self._even(DETERMINERS)
        while len(phrase.adjectives) < 2 and self._chance(0.2):
            adjective = self._pick(lexicon.ADJECTIVES)
            if adjective not in phrase.adjectives:
                phrase.adjectives.append(adjective)
        return phrase
