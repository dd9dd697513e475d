"""What one may ask of a search, checked without torch: commands do so before it is imported."""

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from hyptrans.inference.defaults import BEAM, LENPEN
from hyptrans.inference.sentences import Language, check_at_least_one, check_bounded
from hyptrans.support.errors import UserError
from hyptrans.support.flags import MOST_SEED

if TYPE_CHECKING:
    import torch

MOST_LENPEN = 10.0
"""Power of a length by which a score of float32 is divided and is still a number, not 0."""
LENGTH_LIMIT, LENGTH_STEP = (2, 10), 8
"""A translation has at most this many times the tokens of its source, and this many more, where the
former are rounded up to a multiple of the step."""
TEMPERATURES = (0.01, 100.0)
"""Between which float32 has numbers for logits."""


class Batches(TypedDict, total=False):
    """What all methods take by name.

    Attributes:
        batch_tokens: most source tokens that go through the model at once; 4,000.
        progress: show how many are done; by default for long lists on a terminal.
    """

    batch_tokens: int
    progress: bool | None


class Asked(Batches, total=False):
    """What ``translate`` and ``n_best`` take beside that.

    Attributes:
        beam: hypotheses that are kept of each sentence; 5.
        length_penalty: power of its length by which the log-probability of a hypothesis is divided;
            above 1 favors long translations, below 1 short ones; 1.
        lenpen: the same, as fairseq calls it.
        max_length: most subwords of a translation; twice those of its source and ten more.
        prefix: text that translations begin with, one for all or one for each sentence.
        sampling: draw each subword by its probability, in place of a beam.
        sampling_topk: with it, from so many of the most probable; all.
        temperature: divides the logits: below 1 what is probable becomes more so; 1.
        seed: of what is drawn; without one, torch's own generator draws.
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
class Options:
    """How to search.

    Attributes:
        beam: hypotheses that are kept of each sentence, or samples that are drawn.
        lenpen: power of its length by which a hypothesis's score is divided.
        unkpen: is taken from the score of an unknown subword.
        shortest: fewest tokens of a hypothesis, without its end.
        temperature: divides the logits; above 1 makes samples more alike to noise.
        sample_from: draw each token, from so many of the most probable; None for beam search.
        generator: draws; None for torch's own.
    """

    beam: int = BEAM
    lenpen: float = LENPEN
    unkpen: float = 0.0
    shortest: int = 1
    temperature: float = 1.0
    sample_from: int | None = None
    generator: "torch.Generator | None" = None


def check_names(given: Mapping[str, Any], known: type) -> None:
    """Raise TypeError for an option that a method does not have."""
    for name in given.keys() - known.__annotations__.keys():
        raise TypeError(f"there is no option {name}, there are {', '.join(known.__annotations__)}")


def decide(
    asked: Asked, n: int | None, symbols: int = 1, device: "torch.device | str" = "cpu"
) -> tuple[Options, int]:
    """How to search, and how many translations of each sentence to return.

    Args:
        asked: by name.
        n: translations of each sentence; None for all that are found.
        symbols: of the dictionary.
        device: where samples are drawn.

    Raises:
        TypeError: a name that is none of those of :class:`Asked`, or a value of another type.
        UserError: a value out of range, or what does not go together.
    """
    check_names(asked, Asked)
    given: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
    counts = given.keys() & {"beam", "max_length", "sampling_topk", "batch_tokens"}
    check_at_least_one(**({} if n is None else {"n": n}), **{name: given[name] for name in counts})
    check_bounded(*TEMPERATURES, temperature=given.get("temperature", 1.0))
    if "lenpen" in given and "length_penalty" in given:
        raise UserError("lenpen and length_penalty are the same: leave one out")
    power = "length_penalty" if "length_penalty" in given else "lenpen"
    lenpen = given.get(power, LENPEN)
    check_bounded(-MOST_LENPEN, MOST_LENPEN, **{power: lenpen})
    sampling = given.get("sampling", False)
    if not isinstance(sampling, bool):
        raise TypeError(f"sampling is True or False, got {type(sampling).__name__}")
    if sampling and "beam" in given:
        raise UserError("samples have no beam: n_best(…, n) draws n of them, leave beam out")
    for name in () if sampling else given.keys() & {"sampling_topk", "seed"}:
        raise UserError(f"{name} is for samples: set sampling=True, or leave it out")
    beam = (n or BEAM) if sampling else given.get("beam", BEAM)
    if n is not None and n > beam:
        raise UserError(f"n={n} translations need a beam of at least as many, got beam={beam}")
    seed, draws = given.get("seed"), None
    if seed is not None:
        check_bounded(0, MOST_SEED, seed=seed)
        import torch

        draws = torch.Generator(device).manual_seed(operator.index(seed))
    options = Options(
        beam=int(beam),
        lenpen=float(lenpen),
        temperature=float(given.get("temperature", 1.0)),
        sample_from=int(given.get("sampling_topk", symbols)) if sampling else None,
        generator=draws,
    )
    return options, int(beam if n is None else n)


def limits(rows: Sequence[Sequence[int]], asked: Asked, most: int) -> list[int]:
    """Most tokens of the translation of each sentence, without its end.

    Raises:
        UserError: more are asked for than the model takes, ``most``.
    """
    if (wanted := asked.get("max_length")) is not None:
        if wanted > most:
            raise UserError(
                f"max_length must be at most {most:,}, which the model takes, got {wanted:,}"
            )
        return [int(wanted)] * len(rows)
    times, more = LENGTH_LIMIT
    # of the sentence, not of the longest that happens to be in its batch, as fairseq has it
    return [min(times * rounded_up(len(row), LENGTH_STEP) + more, most) for row in rows]


def rounded_up(size: int, step: int) -> int:
    """The first multiple of ``step`` that is not below a size."""
    return -(-size // step) * step


def prefixes(asked: Asked, target: Language, limits: Sequence[int]) -> list[list[int]]:
    """Tokens that each translation begins with, of at most ``limits``.

    Raises:
        TypeError: the prefix is no text.
        UserError: one is too long, or there is not one for each sentence.
    """
    texts = asked.get("prefix")
    if texts is None:
        return [[] for _ in limits]
    rows = target.rows([texts] * len(limits) if isinstance(texts, str) else texts)
    if len(rows) != len(limits):
        raise UserError(
            f"{len(limits)} sources cannot have {len(rows)} prefixes: one for all, or for each"
        )
    for i, (row, limit) in enumerate(zip(rows, limits, strict=True)):
        # but for the end of the sentence
        del row[-1:]
        if len(row) > limit:
            raise UserError(
                f"the prefix of sentence {i} has {len(row)} subwords, its translation may have "
                f"{limit}: raise max_length"
            )
    return rows
