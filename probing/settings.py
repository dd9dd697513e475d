"""Defaults of commands and functions; importing this module does not load torch."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

from hyptrans.support.errors import UserError
from hyptrans.support.flags import MOST_SEED

SETS = ("train", "dev", "test")
Kind = Literal["lorentz", "poincare", "euclidean"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Punctuation = Literal["upos", "ptb", "none"]
PUNCTUATIONS: tuple[Punctuation, ...] = get_args(Punctuation)
LEAST_RANK = 2
"""Fewest coordinates of a probe's points."""
LEAST_IMPROVEMENT = 1e-4
"""Least relative decrease of a loss that keeps the rate; any decrease keeps a layer training."""
BATCH_TOKENS = 4096
"""Most tokens that an encoder takes at once, padding included."""
BATCH_LINES = 256
"""Lines that stanza parses together."""
SENTENCES = 300
"""Sentences whose states show how a model uses its space."""


@dataclass(frozen=True)
class Settings:
    """What a probe training depends on besides its data.

    Raises:
        UserError: a value is out of range.
    """

    probe: str = "lorentz"
    rank: int = 64
    steps: int = 2000
    batch_size: int = 32
    lr: float = 2e-3
    weight_decay: float = 0.0
    evaluate_every: int = 100
    """Steps between evaluations on the development set."""
    lr_factor: float = 0.5
    """Multiplies the learning rate after more than ``lr_patience`` evaluations in a row without an
    improvement by :data:`LEAST_IMPROVEMENT`."""
    lr_patience: int = 1
    patience: int = 5
    """Evaluations in a row without improvement after which a layer's training ends."""
    seed: int = 1

    def __post_init__(self) -> None:
        least = {"rank": LEAST_RANK, "weight_decay": 0}
        least |= dict.fromkeys(("steps", "batch_size", "evaluate_every", "patience"), 1)
        wrong = {
            name: f"at least {low}"
            for name, low in least.items()
            if not low <= getattr(self, name) < math.inf
        }
        if not 0 < self.lr < math.inf:
            wrong["lr"] = "above 0"
        if not 0 <= self.seed <= MOST_SEED:
            wrong["seed"] = f"0 to {MOST_SEED}"
        if wrong:
            found = ", ".join(
                f"--{name.replace('_', '-')} {_shown(getattr(self, name))} ({bound})"
                for name, bound in wrong.items()
            )
            raise UserError(f"out of range: {found}")


def _shown(value: float) -> str:
    # an integer may be too large for a float
    return str(value) if isinstance(value, int) else f"{value:g}"
