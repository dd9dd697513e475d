"""Search for translations over numpy arrays: beams or samples, of one model or of several.

The rules are those of :mod:`hyptrans.inference.search`, which keeps all hypotheses on a device. A
search of its own is plainer than one over two array libraries: it needs no torch, keeps ended
hypotheses in lists, and finds the best candidates by blocks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hyptrans.inference.dictionary import Dictionary
from hyptrans.inference.options import Settings
from hyptrans.support.errors import UserError

if TYPE_CHECKING:
    from hyptrans.inference.onnx.engine import Graphs

_BLOCK = 64
"""Scores whose maximum stands for them until the best blocks are known."""
Array = np.ndarray


@dataclass(frozen=True)
class Found:
    """A hypothesis.

    Attributes:
        tokens: ``[T]``, the end of the sentence last.
        scores: ``[T]``, of each token: log-probability, base e, less penalties.
        score: what hypotheses are ranked by.
    """

    tokens: Array
    scores: Array
    score: float


def search(
    models: Sequence[Graphs],
    source: Array,
    longest: int,
    settings: Settings,
    prefix: Array,
    words: Dictionary,
) -> list[list[Found]]:
    """Return the hypotheses of each sentence, best first; fewer than ``beam`` where few were found.

    Args:
        models: for the same dictionaries; their probabilities are averaged.
        source: tokens ``[B, S]``, padded on the left.
        longest: most tokens of a hypothesis, without its end.
        settings: how to search.
        prefix: tokens ``[B, P]`` that hypotheses begin with, padded on the right.
        words: dictionary of the target.

    Raises:
        UserError: no hypothesis has a score that is a number, or the lengths contradict each other.
    """
    if settings.shortest > longest:
        raise UserError(
            f"a translation cannot have at least {settings.shortest} and at most {longest} tokens"
        )
    live = _Live(models, source, longest, settings, words)
    done: list[list[Found]] = [[] for _ in source]
    for step in range(longest + 1):
        scores = live.next_scores(step)
        _restrict(scores, step, longest, words, settings)
        if step < min(prefix.shape[1], longest):
            live.follow(prefix[live.sentences, step], scores)
        values, tokens, parents = live.candidates(scores, step)
        ended = (tokens == words.eos()) & (values != -np.inf)
        best = ended[:, : live.beam] & ~live.ignored
        for i, j in np.argwhere(best):
            own = done[live.sentences[i]]
            if len(own) < live.beam:
                own.append(live.found(i, parents[i, j], values[i, j], step))
        full = np.array([len(done[sentence]) >= live.beam for sentence in live.sentences])
        if step == longest or full.all():
            break
        live.advance(values, tokens, parents, ended, np.flatnonzero(~full), step)
    if not all(done):
        raise UserError(
            "no translation has a score that is a number: the weights are damaged, or the "
            "training went on after they were no longer finite"
        )
    return [sorted(own, key=lambda one: -one.score) for own in done]


class _Live:
    """The hypotheses that go on: ``n`` sentences of ``beam`` each."""

    def __init__(
        self,
        models: Sequence[Graphs],
        source: Array,
        longest: int,
        settings: Settings,
        words: Dictionary,
    ) -> None:
        self.models, self.settings, self.words = models, settings, words
        sampling = settings.sample_from is not None
        self.beam = settings.beam if sampling else min(settings.beam, len(words) - 1)
        self.draw = settings.generator or np.random.default_rng()
        self.states = [one.start(source, source == words.pad(), self.beam) for one in models]
        self.sentences = np.arange(len(source))
        """Which sentence of the batch each is."""
        self.ignored = np.zeros((len(source), self.beam), dtype=bool)
        """Places for which there was no hypothesis."""
        self.tokens = np.full((len(source), self.beam, longest + 2), words.pad())
        self.tokens[:, :, 0] = words.eos()
        self.sums = np.zeros(self.tokens.shape, dtype=np.float32)
        """Of the scores of the tokens so far, from the second token on."""
        self.rows = np.zeros((len(source), self.beam), dtype=np.int64)
        """Row of the models' state that each hypothesis goes on."""

    def next_scores(self, step: int) -> Array:
        """Log-probabilities of the next token, ``[n, beam, V]``."""
        last, found = np.ascontiguousarray(self.tokens[:, :, step]), []
        for model, state in zip(self.models, self.states, strict=True):
            scores = model.step(state, last, self.rows, step)
            if self.settings.temperature != 1:
                scores = _log_softmax(scores / np.float32(self.settings.temperature))
            found.append(scores)
        if len(found) == 1:
            return found[0]
        mean = np.logaddexp.reduce(np.stack(found)) - math.log(len(found))
        return np.asarray(mean, dtype=np.float32)

    def follow(self, given: Array, scores: Array) -> None:
        """Leave only the tokens ``[n]`` that are given, where they are no padding."""
        for i, token in enumerate(given):
            if token == self.words.pad():
                continue
            kept = scores[i, :, token].copy()
            scores[i] = -np.inf
            scores[i, :, token] = kept
            if token == self.words.eos():
                # a sentence that is given whole is the same in every place
                for rows in (self.tokens, self.sums, scores):
                    rows[i] = rows[i, :1]

    def candidates(self, scores: Array, step: int) -> tuple[Array, Array, Array]:
        """Scores, tokens and parents ``[n, candidates]``, best first, or drawn."""
        if self.settings.sample_from is not None:
            return self._drawn(scores, step)
        # before the first token all hypotheses are the same
        every = scores + self.sums[:, :, step, None] if step else scores[:, :1]
        vocabulary = every.shape[2]
        flat = every.reshape(len(every), -1)
        values, places = best_of(flat, min(2 * self.beam, flat.shape[1] - 1))
        return values, places % vocabulary, places // vocabulary

    def _drawn(self, scores: Array, step: int) -> tuple[Array, Array, Array]:
        """A token drawn for each hypothesis, ``[n, beam]``."""
        n, beam, symbols = scores.shape
        most = min(self.settings.sample_from or 1, symbols)
        every = scores.reshape(n * beam, symbols)
        top, tokens = best_of(every, most)
        bounds = np.exp(top.astype(np.float64)).cumsum(1)
        drawn = self.draw.random((n * beam, 1)) * bounds[:, -1:]
        place = np.minimum((bounds <= drawn).sum(1), most - 1)[:, None]
        values = np.take_along_axis(top, place, 1).reshape(n, beam)
        chosen = np.take_along_axis(tokens, place, 1).reshape(n, beam)
        before = self.sums[:, :, step] if step else 0
        return values + before, chosen, np.broadcast_to(np.arange(beam), (n, beam))

    def found(self, i: int, parent: int, total: np.float32, step: int) -> Found:
        """The hypothesis that ends with this step."""
        length = step + 1
        tokens = np.append(self.tokens[i, parent, 1:length], self.words.eos())
        sums = np.append(self.sums[i, parent, 1:length], total)
        scores = np.diff(sums, prepend=np.float32(0))
        return Found(tokens, scores, float(total / np.float32(length**self.settings.lenpen)))

    def advance(
        self, values: Array, tokens: Array, parents: Array, ended: Array, left: Array, step: int
    ) -> None:
        """Go on with the best candidates that have not ended, of the sentences that are left."""
        all_left = len(left) == len(self.sentences)
        ended[:, : self.beam] |= self.ignored
        # candidates are in the order of their scores; those that have ended come last
        last = 2 * self.beam
        order = np.arange(ended.shape[1]) + last * ended
        chosen = np.argsort(order, axis=1, kind="stable")[left, : self.beam]
        self.ignored = np.take_along_axis(order[left], chosen, 1) >= last
        values, tokens, parents = (
            np.take_along_axis(one[left], chosen, 1) for one in (values, tokens, parents)
        )
        rows = left[:, None] * self.beam + parents
        self.tokens, self.sums = (
            one.reshape(-1, one.shape[-1])[rows] for one in (self.tokens, self.sums)
        )
        self.tokens[:, :, step + 1], self.sums[:, :, step + 1] = tokens, values
        self.sentences, self.rows = self.sentences[left], rows
        if not all_left:
            for state in self.states:
                state.keep(left)


def best_of(scores: Array, count: int) -> tuple[Array, Array]:
    """Return the largest numbers of each row and their places, largest first.

    Shapes: ``[n, N]`` -> twice ``[n, count]``. NaN counts as minus infinity.
    """
    n, size = scores.shape
    padded = -(-size // _BLOCK) * _BLOCK
    if padded != size:
        wider = np.full((n, padded), -np.inf, dtype=scores.dtype)
        wider[:, :size] = scores
        scores = wider
    blocks = scores.reshape(n, -1, _BLOCK)
    tops = blocks.max(2)
    if np.isnan(tops).any():
        blocks = np.nan_to_num(blocks, nan=-np.inf, posinf=np.inf, neginf=-np.inf)
        tops = blocks.max(2)
    if count < tops.shape[1]:
        # a number among the best lies in a block whose maximum is among the best
        good = np.sort(np.argpartition(-tops, count - 1, axis=1)[:, :count], axis=1)
    else:
        good = np.broadcast_to(np.arange(tops.shape[1]), tops.shape)
    near = np.take_along_axis(blocks, good[:, :, None], 1).reshape(n, -1)
    order = np.argsort(-near, axis=1, kind="stable")[:, :count]
    places = np.take_along_axis(good, order // _BLOCK, 1) * _BLOCK + order % _BLOCK
    return np.take_along_axis(near, order, 1), places


def _restrict(
    scores: Array, step: int, longest: int, words: Dictionary, settings: Settings
) -> None:
    """No padding, a penalty for unknown subwords, no early end, none later than the longest."""
    scores[:, :, words.pad()] = -np.inf
    if settings.unkpen:
        scores[:, :, words.unk()] -= settings.unkpen
    if step == longest:
        scores[:, :, : words.eos()] = -np.inf
        scores[:, :, words.eos() + 1 :] = -np.inf
    if step < settings.shortest:
        scores[:, :, words.eos()] = -np.inf


def _log_softmax(logits: Array) -> Array:
    shifted = logits - logits.max(-1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(-1, keepdims=True)), dtype=np.float32)


def generator(seed: int) -> Any:
    """Return numpy's generator of samples."""
    return np.random.default_rng(seed)
