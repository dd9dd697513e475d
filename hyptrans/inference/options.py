"""Options of a search; checking them needs no torch: commands do so before they import it."""

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict

from hyptrans.inference.sentences import MOST, Language, check_at_least_one, check_bounded
from hyptrans.support.errors import UserError
from hyptrans.support.flags import MOST_SEED

BEAM = 5
"""Number of hypotheses that a search keeps for each sentence."""
LENPEN = 1.0
"""Exponent of the length that divides a hypothesis's log-probability."""
BATCH_TOKENS = 4000
"""Most tokens of a batch of sources, padding included."""
MOST_LENPEN = 10.0
"""Largest length penalty; a float32 score divided by the length to this power is not yet 0."""
LENGTH_LIMIT, LENGTH_STEP = (2, 10), 8
"""A translation has at most ``2 * n + 10`` tokens, where ``n`` is the number of its source's tokens
rounded up to a multiple of 8, so that sentences of similar length can share a batch."""
TEMPERATURES = (0.01, 100.0)
"""Lowest and highest temperature; float32 can represent logits divided by either."""


class BatchOptions(TypedDict, total=False):
    """Options of all methods.

    Attributes:
        batch_tokens: most source tokens that go through the model at once (default: 4,000).
        progress: show how many sentences are done (default: for long lists on a terminal).
    """

    batch_tokens: int
    progress: bool | None


class SearchOptions(BatchOptions, total=False):
    """Options of ``translate`` and ``n_best``.

    Attributes:
        beam: number of hypotheses that the search keeps for each sentence (default: 5).
        length_penalty: exponent of the length that divides a hypothesis's log-probability: above
            1 favors long translations, below 1 short ones (default: 1).
        lenpen: fairseq's name for ``length_penalty``.
        max_length: most subwords of a translation (default: ``2 * n + 10``, where ``n`` is the
            number of its source's subwords, rounded up to a multiple of 8).
        prefix: text that translations begin with, one for all or one for each sentence.
        sampling: draw each subword by its probability instead of searching with a beam.
        sampling_topk: how many of the most probable subwords to draw from (default: all).
        temperature: divisor of the logits (default: 1): below 1 favors probable subwords.
        seed: seed of the samples; without one, they differ each time.
    """

    beam: int
    length_penalty: float
    lenpen: float
    max_length: int | None
    prefix: str | Iterable[str] | None
    sampling: bool
    sampling_topk: int
    temperature: float
    seed: int


@dataclass(frozen=True)
class Settings:
    """All settings of a search.

    Attributes:
        beam: hypotheses that the search keeps for each sentence, or samples that it draws.
        lenpen: exponent of the length that divides a hypothesis's score.
        shortest: fewest tokens of a hypothesis, without its end.
        temperature: divisor of the logits.
        sample_from: how many of the most probable tokens to sample from.
        generator: numpy's generator that draws the samples; None for beam search.
    """

    beam: int = BEAM
    lenpen: float = LENPEN
    shortest: int = 1
    temperature: float = 1.0
    sample_from: int = MOST
    generator: Any = None


def check_names(given: Mapping[str, Any], known: type) -> None:
    """Raise TypeError for an option that a method lacks."""
    for name in given.keys() - known.__annotations__.keys():
        raise TypeError(f"unknown option {name}; options are {', '.join(known.__annotations__)}")


def decide(options: SearchOptions, n: int | None) -> Settings:
    """Return the settings of a search for ``n`` translations of each sentence, or for all it finds.

    Raises:
        TypeError: :class:`SearchOptions` lacks a name, or a value has the wrong type.
        UserError: a value is out of range, or options contradict each other.
    """
    check_names(options, SearchOptions)
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    counts = ("beam", "max_length", "sampling_topk", "batch_tokens")
    check_at_least_one(n=1 if n is None else n, **{k: given[k] for k in counts if k in given})
    temperature, beam = given.get("temperature", 1.0), given.get("beam", BEAM)
    check_bounded(*TEMPERATURES, temperature=temperature)
    if "lenpen" in given and "length_penalty" in given:
        raise UserError("lenpen and length_penalty are the same: leave one out")
    name = "lenpen" if "lenpen" in given else "length_penalty"
    check_bounded(-MOST_LENPEN, MOST_LENPEN, **{name: given.get(name, LENPEN)})
    lenpen = float(given.get(name, LENPEN))
    sampling = given.get("sampling", False)
    if not isinstance(sampling, bool):
        raise TypeError(f"sampling must be True or False, got {type(sampling).__name__}")
    settings = Settings(int(beam), lenpen, temperature=float(temperature))
    if not sampling:
        for name in given.keys() & {"sampling_topk", "seed"}:
            raise UserError(f"{name} is for samples: set sampling=True, or leave it out")
        if n is not None and n > beam:
            raise UserError(f"n={n} translations need a beam of at least as many, got beam={beam}")
        return settings
    if "beam" in given:
        raise UserError("sampling uses no beam: leave beam out; n_best(…, n) draws n samples")
    seed = given.get("seed")
    if seed is not None:
        check_bounded(0, MOST_SEED, seed=seed)
        seed = operator.index(seed)
    import numpy as np

    most, draw = int(given.get("sampling_topk", MOST)), np.random.default_rng(seed)
    return replace(settings, beam=int(n or BEAM), sample_from=most, generator=draw)


def limits(rows: Sequence[Sequence[int]], options: SearchOptions, most: int) -> list[int]:
    """Return the most tokens that each sentence's translation may have, without its end.

    Raises:
        UserError: ``max_length`` exceeds ``most``, the limit of the model.
    """
    if (wanted := options.get("max_length")) is not None:
        if wanted > most:
            raise UserError(
                f"max_length must be at most {most:,}, the model's limit, got {wanted:,}"
            )
        return [int(wanted)] * len(rows)
    times, more = LENGTH_LIMIT
    # from the sentence's own length; fairseq takes that of the longest sentence in the batch
    return [min(times * rounded_up(len(row), LENGTH_STEP) + more, most) for row in rows]


def rounded_up(size: int, step: int) -> int:
    """Return the smallest multiple of ``step`` that is at least ``size``."""
    return -(-size // step) * step


def prefixes(
    options: SearchOptions, target: Language, limits: Sequence[int]
) -> list[tuple[list[int], tuple[str, ...]]]:
    """Return the tokens and subwords that each translation begins with, at most ``limits`` many.

    A subword that the model doesn't know appears unchanged in the translation.

    Raises:
        TypeError: a prefix is not text.
        UserError: a prefix is too long, or there are not as many prefixes as sentences.
    """
    texts = options.get("prefix")
    if texts is None:
        return [([], ())] * len(limits)
    texts = [texts] * len(limits) if isinstance(texts, str) else texts
    made = [(row[:-1], subwords) for row, subwords in target.cut_all(texts)]
    if len(made) != len(limits):
        raise UserError(
            f"{len(limits)} sources cannot have {len(made)} prefixes: give one for all or for each"
        )
    for i, ((row, _), limit) in enumerate(zip(made, limits, strict=True)):
        if len(row) > limit:
            raise UserError(
                f"the prefix of sentence {i} has {len(row)} subwords, its translation may have "
                f"{limit}: raise max_length"
            )
    return made
