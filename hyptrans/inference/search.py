"""Search for translations: beams or samples, of one model or of several.

Hypotheses and scores equal those of fairseq's ``SequenceGenerator``. All hypotheses of a batch are
rows of the same tensors.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from hyptrans.inference.options import Settings
from hyptrans.layers.curvature import kept_curvatures
from hyptrans.support.errors import UserError


@dataclass(frozen=True)
class Found:
    """A hypothesis.

    Attributes:
        tokens: ``[T]``, the last one the end of the sentence.
        scores: ``[T]``, each token's log-probability, base e, minus penalties.
        score: the score that ranks hypotheses.
    """

    tokens: Tensor
    scores: Tensor
    score: float


@torch.inference_mode()
def search(
    models: Sequence[Any],
    source: Tensor,
    longest: int,
    settings: Settings | None = None,
    *,
    prefix: Tensor | None = None,
) -> list[list[Found]]:
    """Return each sentence's hypotheses, best first; fewer than ``beam`` if fewer were found.

    Args:
        models: each an ``EncoderDecoder`` for the same dictionaries; their probabilities are
            averaged.
        source: tokens ``[B, S]``, padded on either side, with the end of sentence.
        longest: most tokens of a hypothesis, without its end.
        settings: settings of the search; by default those of :class:`Settings`.
        prefix: tokens ``[B, P]`` that hypotheses begin with, padded on the right.

    Raises:
        UserError: a sentence has no hypothesis with a numeric score, or no length is allowed.
    """
    with kept_curvatures(*models):
        return _search(models, source, longest, settings or Settings(), prefix)


def _search(
    models: Sequence[Any], source: Tensor, longest: int, settings: Settings, prefix: Tensor | None
) -> list[list[Found]]:
    words = models[0].decoder.dictionary
    longest = min(longest, *(model.decoder.longest - 1 for model in models))
    if settings.shortest > longest:
        raise UserError(
            f"a translation cannot have at least {settings.shortest} and at most {longest} tokens"
        )
    sampling = settings.sample_from is not None
    beam = settings.beam if sampling else min(settings.beam, len(words) - 1)
    live = _Live(models, source, beam, longest, words)
    done = _Done(len(source), beam, longest, words, source.device)
    for step in range(longest + 1):
        scores = live.next_scores(step, settings.temperature)
        _restrict(scores, step, longest, words, settings)
        if step < settings.shortest:
            scores[:, :, words.eos()] = -torch.inf
        if prefix is not None and step < min(prefix.size(1), longest):
            scores = live.follow(prefix[:, step], scores, step)
        if settings.sample_from is None:
            values, tokens, parents = _best(scores, live.before(step))
        else:
            values, tokens, parents = _drawn(scores, live.before(step), settings)
        ended = tokens.eq(words.eos()) & values.ne(-torch.inf)
        rows = parents + live.first_rows
        if step < longest and not live.lacks and not bool(ended.any()):
            # no hypothesis has ended or is missing: the best go on
            live.extend(*(one[:, :beam] for one in (values, tokens, rows)), step=step)
            continue
        ended[:, :beam] &= ~live.ignored
        full = done.add(live, ended[:, :beam], values, parents, step, settings.lenpen)
        finished = full | ended[:, :beam].any(1) if step == longest else full
        if step == longest or bool(finished.all()):
            break
        keep = torch.arange(len(values), device=values.device)
        left = None
        if bool(finished.any()):
            left = keep = keep[~finished]
            prefix = None if prefix is None else prefix[keep]
        chosen = (one[keep] for one in (values, tokens, rows, ended))
        live.advance(*chosen, left=left, step=step)
    return done.sorted()


class _Live:
    """The unfinished hypotheses: ``beam`` for each of ``n`` sentences."""

    def __init__(
        self, models: Sequence[Any], source: Tensor, beam: int, longest: int, words: Any
    ) -> None:
        self.models, self.beam, self.words = models, beam, words
        self.memories = [model.encoder.memory(source) for model in models]
        self.states = [model.decoder.start() for model in models]
        self.sentences = torch.arange(len(source), device=source.device)
        """Each sentence's place in the batch."""
        self.ignored = torch.zeros(len(source), beam, dtype=torch.bool, device=source.device)
        """True at places without a hypothesis."""
        self.lacks = False
        """Whether any place has no hypothesis."""
        self.first_rows = beam * self.sentences[:, None]
        """Row of each sentence's first hypothesis, ``[n, 1]``."""
        shape = (len(source), beam, longest + 2)
        self.tokens = source.new_full(shape, words.pad())
        self.tokens[:, :, 0] = words.eos()
        self.sums = torch.zeros(shape, dtype=torch.float32, device=source.device)
        """Sums of token scores up to each token; index 0, the start, has no score."""

    def before(self, step: int) -> Tensor | None:
        """Return the hypotheses' scores so far, ``[n, beam]``; None before the first token."""
        return self.sums[:, :, step] if step else None

    def next_scores(self, step: int, temperature: float) -> Tensor:
        """Return log-probabilities of the next token, ``[n, beam, V]``."""
        tokens, found = self.tokens[:, :, : step + 1].flatten(0, 1), []
        for model, (memory, padding), state in zip(
            self.models, self.memories, self.states, strict=True
        ):
            logits = model.decoder.predict(tokens, memory, padding, state)[:, -1]
            logits = logits if temperature == 1 else logits / temperature
            found.append(F.log_softmax(logits, -1, dtype=torch.float32))
        scores = found[0]
        if len(found) > 1:
            scores = torch.stack(found).logsumexp(0) - math.log(len(found))
        scores.nan_to_num_(-math.inf, math.inf, -math.inf)
        return scores.view(-1, self.beam, scores.size(1))

    def follow(self, given: Tensor, scores: Tensor, step: int) -> Tensor:
        """Return scores that allow only the given tokens ``[n]``; padding allows every token."""
        given = given[:, None, None].expand(-1, self.beam, 1)
        alone = torch.full_like(scores, -torch.inf).scatter(2, given, scores.gather(2, given))
        scores = torch.where(given.eq(self.words.pad()), scores, alone)
        # if the prefix is a whole translation, all hypotheses of the sentence become equal
        whole = given[:, 0, 0].eq(self.words.eos())
        for rows in (self.tokens, self.sums, scores):
            rows[whole] = rows[whole][:, :1]
        return scores

    def advance(
        self,
        values: Tensor,
        tokens: Tensor,
        rows: Tensor,
        ended: Tensor,
        *,
        left: Tensor | None,
        step: int,
    ) -> None:
        """Continue with the best candidates ``[n, candidates]`` that have not ended.

        ``left`` holds the rows of the unfinished sentences; None if all are unfinished.
        """
        if left is not None:
            self.sentences, self.ignored = self.sentences[left], self.ignored[left]
            self.memories = [(memory[left], padding[left]) for memory, padding in self.memories]
            self.first_rows = self.first_rows[: len(left)]
        ended[:, : self.beam] |= self.ignored
        # candidates are sorted by score; move those that have ended to the end
        last = 2 * self.beam
        order = torch.arange(ended.size(1), device=ended.device) + last * ended
        ranks, chosen = order.topk(self.beam, dim=1, largest=False)
        self.ignored = ranks.ge(last)
        self.lacks = bool(self.ignored.any())
        best = (one.gather(1, chosen) for one in (values, tokens, rows))
        self.extend(*best, left=left, step=step)

    def extend(
        self,
        values: Tensor,
        tokens: Tensor,
        rows: Tensor,
        *,
        left: Tensor | None = None,
        step: int,
    ) -> None:
        """Continue with hypotheses ``[n, beam]``: each extends an earlier row by a token."""
        if self.beam > 1 or left is not None:
            order = rows.flatten()
            self.tokens, self.sums = (
                kept.flatten(0, 1).index_select(0, order).view(*rows.shape, -1)
                for kept in (self.tokens, self.sums)
            )
            for state in self.states:
                state.reorder(order, left)
        self.tokens[:, :, step + 1], self.sums[:, :, step + 1] = tokens, values


class _Done:
    """The finished hypotheses, ``[B, beam]``."""

    def __init__(self, rows: int, beam: int, longest: int, words: Any, device: Any) -> None:
        self.beam, self.eos = beam, words.eos()
        self.tokens = torch.zeros(rows, beam, longest + 1, dtype=torch.long, device=device)
        # log-probabilities are float32, whatever torch's default dtype is
        self.scores = torch.zeros(rows, beam, longest + 1, dtype=torch.float32, device=device)
        self.totals = torch.full((rows, beam), -torch.inf, dtype=torch.float32, device=device)
        self.lengths = torch.zeros(rows, beam, dtype=torch.long, device=device)
        self.counts = torch.zeros(rows, dtype=torch.long, device=device)

    def add(
        self,
        live: _Live,
        ended: Tensor,
        values: Tensor,
        parents: Tensor,
        step: int,
        lenpen: float,
    ) -> Tensor:
        """Add ended candidates ``[n, beam]``; return which sentences have enough hypotheses."""
        places = self.counts[live.sentences][:, None] + ended.cumsum(1) - 1
        taken = ended & places.lt(self.beam)
        rows, columns = taken.nonzero(as_tuple=True)
        if len(rows):
            who, place = live.sentences[rows], places[rows, columns]
            parent, total, length = parents[rows, columns], values[rows, columns], step + 1
            self.tokens[who, place, :step] = live.tokens[rows, parent, 1:length]
            self.tokens[who, place, step] = self.eos
            sums = torch.cat([live.sums[rows, parent, 1:length], total[:, None]], 1)
            sums[:, 1:] = sums[:, 1:] - sums[:, :-1]
            self.scores[who, place, :length] = sums
            self.totals[who, place] = total / length**lenpen
            self.lengths[who, place] = length
            self.counts[live.sentences] += taken.sum(1)
        return self.counts[live.sentences].ge(self.beam)

    def sorted(self) -> list[list[Found]]:
        """Return each sentence's hypotheses, best first."""
        if bool(self.counts.eq(0).any()):
            raise UserError(
                "no translation has a score that is a number: the weights are damaged, or the "
                "training went on after they were no longer finite"
            )
        # empty places have a score below all others
        totals, order = self.totals.cpu().sort(dim=1, descending=True, stable=True)
        tokens, scores, lengths = (one.cpu() for one in (self.tokens, self.scores, self.lengths))
        return [
            [
                Found(tokens[i, j, : lengths[i, j]], scores[i, j, : lengths[i, j]], score)
                for j, score in zip(order[i].tolist(), totals[i].tolist(), strict=True)
                if lengths[i, j]
            ]
            for i in range(len(order))
        ]


def _restrict(scores: Tensor, step: int, longest: int, words: Any, settings: Settings) -> None:
    """Forbid padding, penalize unknown subwords, and force the end at the longest length."""
    scores[:, :, words.pad()] = -torch.inf
    if settings.unkpen:
        scores[:, :, words.unk()] -= settings.unkpen
    if step == longest:
        scores[:, :, : words.eos()] = -torch.inf
        scores[:, :, words.eos() + 1 :] = -torch.inf


def _best(scores: Tensor, before: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Return candidates ``[n, candidates]``, best first: their scores, tokens and parents.

    There are twice as many candidates as hypotheses, since half of them may have ended.
    """
    beam, vocabulary = scores.shape[1:]
    # before the first token all hypotheses are equal
    every = scores[:, 0] if before is None else scores.add_(before[:, :, None]).flatten(1)
    values, places = every.topk(min(2 * beam, every.size(1) - 1))
    return values, places.fmod(vocabulary), places.div(vocabulary, rounding_mode="trunc")


def _drawn(
    scores: Tensor, before: Tensor | None, settings: Settings
) -> tuple[Tensor, Tensor, Tensor]:
    """Draw a token for each hypothesis, ``[n, beam]``; return what :func:`_best` returns."""
    rows, beam = scores.shape[:2]
    most = min(settings.sample_from or 1, scores.size(2))
    top, tokens = (scores[:, :1] if before is None else scores).topk(most)
    probabilities = top.exp()
    count = beam if before is None else 1
    options: dict[str, Any] = {"replacement": True, "generator": settings.generator}
    drawn = torch.multinomial(probabilities.flatten(0, 1), count, **options).view(rows, beam, 1)
    every = (-1, beam, -1)
    values = probabilities.expand(*every).gather(2, drawn).log().squeeze(2)
    parents = torch.zeros(rows, beam, dtype=torch.long, device=scores.device)
    if before is not None:
        values = values + before
        parents = torch.arange(beam, device=scores.device).expand(rows, -1)
    return values, tokens.expand(*every).gather(2, drawn).squeeze(2), parents
