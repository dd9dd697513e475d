"""What one may ask of a search, checked."""

import operator
from collections.abc import Iterable, Mapping
from typing import Any, TypedDict

import torch

from hyptrans.inference.defaults import BEAM, LENPEN
from hyptrans.inference.search import Options
from hyptrans.inference.sentences import check_at_least_one, check_bounded
from hyptrans.support.errors import UserError
from hyptrans.support.flags import MOST_SEED

MOST_LENPEN = 10.0
"""Power of a length by which a score of float32 is divided and is still a number, not 0."""
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


def check_names(given: Mapping[str, Any], known: type) -> None:
    """Raise TypeError for an option that a method does not have."""
    for name in given.keys() - known.__annotations__.keys():
        raise TypeError(f"there is no option {name}, there are {', '.join(known.__annotations__)}")


def decide(asked: Asked, n: int | None, symbols: int) -> tuple[Options, int]:
    """How to search, and how many translations of each sentence to return.

    Args:
        asked: by name.
        n: translations of each sentence; None for all that are found.
        symbols: of the dictionary.

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
    options = Options(
        beam=int(beam),
        lenpen=float(lenpen),
        temperature=float(given.get("temperature", 1.0)),
        sample_from=int(given.get("sampling_topk", symbols)) if sampling else None,
    )
    return options, int(beam if n is None else n)


def generator(asked: Asked, device: torch.device) -> torch.Generator | None:
    """What draws, None for torch's own.

    Raises:
        UserError: no seed that generators take.
    """
    seed = asked.get("seed")
    if seed is None:
        return None
    check_bounded(0, MOST_SEED, seed=seed)
    return torch.Generator(device).manual_seed(operator.index(seed))
