"""Search for translations: beams or samples, over numpy arrays, whatever computes the model.

Hypotheses and scores equal those of fairseq's ``SequenceGenerator``. Hypotheses are rows of each
step that point to rows of the previous step; the engine finds the best tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from hyptrans.inference.options import Settings
from hyptrans.support.errors import UserError

Array = np.ndarray


class Decoding(Protocol):
    """A batch of ``n`` sentences between decoding steps, in a model's or an ensemble's memory."""

    def scores(self, tokens: Array, parents: Array, position: int) -> Array:
        """Return log-probabilities ``[n, beam, V]`` of the next token; none is NaN.

        Args:
            tokens: the last token of each hypothesis, ``[n, beam]``.
            parents: the row of the previous step that each hypothesis extends, ``[n, beam]``.
            position: number of earlier tokens.
        """

    def best(self, tokens: Array, parents: Array, position: int) -> tuple[Array, Array]:
        """Return the largest of :meth:`scores` and their tokens, ``[n, beam, 2 beam + 2]``.

        They are sorted, largest first; there are fewer if the dictionary is smaller.
        """

    def keep(self, sentences: Array) -> None:
        """Keep only the given sentences from the next step on; rows are numbered as before."""


@dataclass(frozen=True)
class Found:
    """A hypothesis.

    Attributes:
        tokens: ``[T]``, the last one the end of the sentence.
        scores: ``[T]``, each token's log-probability, base e.
        score: the score that ranks hypotheses.
    """

    tokens: Array
    scores: Array
    score: float


def search(
    decoding: Decoding, longest: int, settings: Settings, prefix: Array, words: Any
) -> list[list[Found]]:
    """Return each sentence's hypotheses, best first; fewer than ``beam`` if fewer were found.

    Args:
        decoding: a batch of sentences for ``beam_of(settings, words)`` hypotheses each.
        longest: most tokens of a hypothesis, without its end.
        settings: settings of the search.
        prefix: tokens ``[n, P]`` that hypotheses begin with, padded on the right.
        words: dictionary of the target.

    Raises:
        UserError: a sentence has no hypothesis with a numeric score, or no length is allowed.
    """
    if settings.shortest > longest:
        raise UserError(
            f"a translation cannot have at least {settings.shortest} and at most {longest} tokens"
        )
    live = _Live(decoding, len(prefix), longest, settings, words)
    done: list[list[Found]] = [[] for _ in prefix]
    begun = min(prefix.shape[1], longest)
    for step in range(longest + 1):
        given = prefix[live.sentences, step] if step < begun else None
        values, tokens, parents = live.candidates(step, given)
        rows = live.first_rows + parents
        ended = (tokens == words.eos()) & (values != -np.inf)
        if step < longest and not (live.lacks or ended.any()):
            # no hypothesis has ended or is missing: the best continue
            live.extend(*(one[:, : live.beam] for one in (values, tokens, rows)))
            continue
        for i, j in np.argwhere(ended[:, : live.beam] & ~live.ignored).tolist():
            own = done[live.sentences[i]]
            if len(own) < live.beam:
                own.append(live.found(int(rows[i, j]), values[i, j]))
        full = np.array([len(done[sentence]) >= live.beam for sentence in live.sentences])
        if step == longest or full.all():
            break
        live.advance(values, tokens, rows, ended, np.flatnonzero(~full))
    if not all(done):
        raise UserError(
            "no translation of a sentence has a valid score: the weights are damaged, or the "
            "training continued after they were no longer finite"
        )
    return [sorted(own, key=lambda one: -one.score) for own in done]


def beam_of(settings: Settings, words: Any) -> int:
    """Return the number of hypotheses of a sentence; a beam is no wider than the dictionary."""
    return settings.beam if settings.generator else min(settings.beam, len(words) - 1)


class _Live:
    """The unfinished hypotheses: ``beam`` for each of ``n`` sentences."""

    def __init__(
        self, decoding: Decoding, sentences: int, longest: int, settings: Settings, words: Any
    ) -> None:
        self.decoding, self.settings, self.words = decoding, settings, words
        self.longest, self.beam = longest, beam_of(settings, words)
        self.sentences = np.arange(sentences)
        """Each sentence's place in the batch."""
        shape = (sentences, self.beam)
        self.ignored = np.zeros(shape, dtype=bool)
        """True at places without a hypothesis."""
        self.lacks = False
        """Whether any place has no hypothesis."""
        self.first_rows = self.beam * self.sentences[:, None]
        """Row of each sentence's first hypothesis, ``[n, 1]``."""
        self.last = np.full(shape, words.eos())
        self.totals = np.zeros(shape, dtype=np.float32)
        """Sums of the scores of the tokens so far."""
        self.rows = np.zeros(shape, dtype=np.int64)
        """The row of the previous step that each hypothesis extends."""
        self.steps: list[tuple[list[int], list[int], list[float]]] = []
        """Each step's last tokens, rows and totals; hypotheses are read from their ends."""

    def candidates(self, step: int, given: Array | None) -> tuple[Array, Array, Array]:
        """Return scores, tokens and parents ``[n, candidates]``, best first, or drawn.

        ``given``: tokens ``[n]`` that hypotheses must continue with, unless they are padding.
        """
        draw = self.settings.generator
        if draw is None and given is None and step < self.longest:
            return self._best_of_rows(step)
        scores = self.decoding.scores(self.last, self.rows, step)
        self._restrict(scores, step)
        if given is not None:
            self._follow(given, scores)
        if draw is not None:
            return self._drawn(scores, draw)
        # before the first token all hypotheses are equal
        every = scores + self.totals[:, :, None] if step else scores[:, :1]
        vocabulary = every.shape[2]
        flat = every.reshape(len(every), -1)
        values, places = best_of(flat, min(2 * self.beam, flat.shape[1] - 1))
        return values, places % vocabulary, places // vocabulary

    def _best_of_rows(self, step: int) -> tuple[Array, Array, Array]:
        """Return the candidates among each hypothesis's best tokens, which the engine found."""
        values, tokens = self.decoding.best(self.last, self.rows, step)
        # there are two tokens to spare, so that these can be excluded
        values[(tokens == self.words.pad()) | np.isnan(values)] = -np.inf
        if step < self.settings.shortest:
            values[tokens == self.words.eos()] = -np.inf
        n, _, most = values.shape
        every = values + self.totals[:, :, None] if step else values[:, :1]
        flat = every.reshape(n, -1)
        order = np.argsort(-flat, axis=1, kind="stable")[:, : 2 * self.beam]
        places = np.arange(n)[:, None], order
        return flat[places], tokens.reshape(n, -1)[places], order // most

    def _restrict(self, scores: Array, step: int) -> None:
        """Forbid padding and early ends, and force the end at the longest length, in place."""
        eos = self.words.eos()
        scores[:, :, self.words.pad()] = -np.inf
        if step == self.longest:
            scores[:, :, :eos] = -np.inf
            scores[:, :, eos + 1 :] = -np.inf
        if step < self.settings.shortest:
            scores[:, :, eos] = -np.inf

    def _follow(self, given: Array, scores: Array) -> None:
        """Allow only the given tokens ``[n]``, in place; padding allows every token."""
        for i, token in enumerate(given):
            if token == self.words.pad():
                continue
            kept = scores[i, :, token].copy()
            scores[i] = -np.inf
            scores[i, :, token] = kept
            if token == self.words.eos():
                # the prefix is a whole translation: all hypotheses of the sentence become equal
                for rows in (self.rows, self.last, self.totals, scores):
                    rows[i] = rows[i, :1]
                if self.steps:
                    self.steps[-1] = self._step()

    def _drawn(self, scores: Array, draw: np.random.Generator) -> tuple[Array, Array, Array]:
        """Draw a token for each hypothesis, ``[n, beam]``."""
        n, beam, symbols = scores.shape
        most = min(self.settings.sample_from, symbols)
        every = scores.reshape(n * beam, symbols)
        top, tokens = best_of(every, most)
        bounds = np.exp(top.astype(np.float64)).cumsum(1)
        drawn = draw.random((n * beam, 1)) * bounds[:, -1:]
        place = np.minimum((bounds <= drawn).sum(1), most - 1)[:, None]
        values = np.take_along_axis(top, place, 1).reshape(n, beam)
        chosen = np.take_along_axis(tokens, place, 1).reshape(n, beam)
        return values + self.totals, chosen, np.broadcast_to(np.arange(beam), (n, beam))

    def found(self, row: int, total: np.float32) -> Found:
        """Return the hypothesis that extends a row of the last step and ends now."""
        tokens, sums = [self.words.eos()], [float(total)]
        for of_step, rows, of_rows in reversed(self.steps):
            tokens.append(of_step[row])
            sums.append(of_rows[row])
            row = rows[row]
        totals = np.array([0.0, *reversed(sums)], dtype=np.float32)
        scores = totals[1:] - totals[:-1]
        score = float(total / np.float32(len(tokens) ** self.settings.lenpen))
        return Found(np.array(tokens[::-1]), scores, score)

    def advance(self, values: Array, tokens: Array, rows: Array, ended: Array, left: Array) -> None:
        """Continue with the best unfinished candidates of the sentences ``left``."""
        ended[:, : self.beam] |= self.ignored
        # candidates are sorted by score; move those that have ended to the end
        last = 2 * self.beam
        order = np.arange(ended.shape[1]) + last * ended
        chosen = np.argsort(order, axis=1, kind="stable")[left, : self.beam]
        self.ignored = np.take_along_axis(order[left], chosen, 1) >= last
        self.lacks = bool(self.ignored.any())
        if len(left) < len(self.sentences):
            self.decoding.keep(left)
        self.sentences, self.first_rows = self.sentences[left], self.first_rows[: len(left)]
        best = (np.take_along_axis(one[left], chosen, 1) for one in (values, tokens, rows))
        self.extend(*best)

    def extend(self, values: Array, tokens: Array, rows: Array) -> None:
        """Continue with hypotheses ``[n, beam]``: each extends an earlier row by a token."""
        self.totals, self.last, self.rows = values.copy(), tokens.copy(), rows.copy()
        self.steps.append(self._step())

    def _step(self) -> tuple[list[int], list[int], list[float]]:
        tokens, rows, totals = (one.ravel().tolist() for one in (self.last, self.rows, self.totals))
        return tokens, rows, totals


def best_of(scores: Array, count: int) -> tuple[Array, Array]:
    """Return the largest numbers of each row and their places, largest first; NaN is the least.

    Shapes: ``[n, N]`` -> twice ``[n, count]``.
    """
    near = np.argpartition(-scores, count - 1, axis=1)[:, :count]
    # of equal numbers the first comes first
    near.sort(axis=1)
    values = np.take_along_axis(scores, near, 1)
    order = np.argsort(-values, axis=1, kind="stable")
    return np.take_along_axis(values, order, 1), np.take_along_axis(near, order, 1)
