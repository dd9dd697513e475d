"""Settings of a probe's training with their flags, and constants; this does not load torch."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

from hyptrans.support.flags import number, seed
from hyptrans.support.options import setting

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


@dataclass(frozen=True)
class Settings:
    """What a probe training depends on besides its data; every field is a flag."""

    probe: str = setting(
        "lorentz",
        "lorentz, as the HyboNet paper's; poincare, as Chen et al.'s; euclidean, as Hewitt and "
        "Manning's",
        choices=KINDS,
    )
    rank: int = setting(
        64,
        "coordinates of a probe's points, time included",
        number(int, lambda n: n >= LEAST_RANK, f"{LEAST_RANK} or more"),
    )
    steps: int = setting(
        2000,
        "maximum training steps for each layer and task (DEFAULT; the HyboNet paper: "
        "--steps 20000 --lr 5e-5)",
    )
    batch_size: int = setting(32, "sentences in a batch")
    lr: float = setting(
        2e-3,
        f"Adam's learning rate, multiplied by {LR_FACTOR:g} after {LR_PATIENCE + 1} evaluations in "
        f"a row without improvement by {100 * LEAST_IMPROVEMENT:g} %% (DEFAULT, "
        "chosen to learn within 2,000 steps)",
        number(float, lambda x: 0 < x < math.inf, "above 0 and finite"),
        metavar="RATE",
    )
    weight_decay: float = setting(
        0.0,
        "Adam's L2 penalty",
        number(float, lambda x: 0 <= x < math.inf, "0 or more and finite"),
        metavar="X",
    )
    evaluate_every: int = setting(100, "steps between evaluations on the development set")
    patience: int = setting(
        5, "evaluations in a row without improvement after which a layer's training stops"
    )
    seed: int = setting(1, "seed of initial weights and sentence order", seed)
