"""Settings of a probe's training with their flags, and constants; this does not load torch."""

import argparse
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

from hyptrans.support.flags import positive, seed

SETS = ("train", "dev", "test")
Kind = Literal["lorentz", "poincare", "euclidean"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Punctuation = Literal["upos", "ptb", "none"]
PUNCTUATIONS: tuple[Punctuation, ...] = get_args(Punctuation)
LEAST_RANK = 2
"""Fewest coordinates of a probe's points."""
LEAST_IMPROVEMENT = 1e-4
"""Least relative decrease of a loss that keeps the rate; any decrease keeps a layer training."""
LR_FACTOR, LR_PATIENCE = 0.5, 1
"""The factor multiplies the learning rate after more than ``LR_PATIENCE`` evaluations in a row on
the development set without an improvement by ``LEAST_IMPROVEMENT``."""
SENTENCES = 300
"""Sentences whose states show how a model uses its space."""


def _number(kind: type, fits: Callable[[float], bool], about: str) -> Callable[[str], Any]:
    """Return a parser of numbers that fit, for argparse."""

    def parse(text: str) -> Any:
        with suppress(ValueError):
            if fits(value := kind(text)):
                return value
        raise argparse.ArgumentTypeError(f"{text!r} is not {about}")

    return parse


def _setting(default: Any, about: str, parse: Callable[[str], Any] = positive, **more: Any) -> Any:
    """Return a field that becomes a flag, with its help and other arguments of argparse."""
    about += "" if "default: " in about else " (default: %(default)s)"
    more = {"type": parse, "metavar": "N", **more}
    return field(default=default, metadata={"help": about, **more})


@dataclass(frozen=True)
class Settings:
    """What a probe training depends on besides its data; every field is a flag."""

    probe: str = _setting(
        "lorentz",
        "lorentz, as the HyboNet paper's; poincare, as Chen et al.'s; euclidean, as Hewitt and "
        "Manning's",
        str,
        choices=KINDS,
        metavar=None,
    )
    rank: int = _setting(
        64,
        "coordinates of a probe's points, time included",
        _number(int, lambda n: n >= LEAST_RANK, f"{LEAST_RANK} or more"),
    )
    steps: int = _setting(
        2000,
        "maximum training steps for each layer and task (default: %(default)s; the HyboNet paper: "
        "--steps 20000 --lr 5e-5)",
    )
    batch_size: int = _setting(32, "sentences in a batch")
    lr: float = _setting(
        2e-3,
        f"Adam's learning rate, multiplied by {LR_FACTOR:g} after {LR_PATIENCE + 1} evaluations in "
        f"a row without improvement by {100 * LEAST_IMPROVEMENT:g} %% (default: %(default)s, "
        "chosen to learn within 2,000 steps)",
        _number(float, lambda x: 0 < x < math.inf, "above 0 and finite"),
        metavar="RATE",
    )
    weight_decay: float = _setting(
        0.0,
        "Adam's L2 penalty",
        _number(float, lambda x: 0 <= x < math.inf, "0 or more and finite"),
        metavar="X",
    )
    evaluate_every: int = _setting(100, "steps between evaluations on the development set")
    patience: int = _setting(
        5, "evaluations in a row without improvement after which a layer's training stops"
    )
    seed: int = _setting(1, "seed of initial weights and sentence order", seed)


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Add a flag for every setting, which :func:`settings_of` reads."""
    for one in fields(Settings):
        flag = f"--{one.name.replace('_', '-')}"
        parser.add_argument(flag, default=one.default, **one.metadata)


def settings_of(args: argparse.Namespace) -> Settings:
    """Return the settings that the flags give."""
    return Settings(**{one.name: getattr(args, one.name) for one in fields(Settings)})
