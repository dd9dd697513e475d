"""Bounds of options that are numbers, far beyond any in use: a file may be a stranger's."""

import re

from hyptrans.seq2seq.config import CURVATURES
from hyptrans.support.errors import UserError

BOUNDS = {
    r"\w*layers": (0, 1_000),
    r"\w*heads": (1, 1_024),
    r"\w*_dim": (0, 1 << 20),
    r"\w*positions": (0, 10_000_000),
    r"\w*dropout": (0, 1),
    r"curvature": CURVATURES,
}
"""Lowest and highest value of numbers, by the name of the option."""
MOST_POSITIONS_TIMES_WIDTH = 1 << 24
"""Numbers of a table of sinusoidal positions, which is made and not stored: four times those of
4,096 positions of width 1,024."""


def check_number(name: str, value: float) -> None:
    """Hold a number against `BOUNDS`.

    Raises:
        UserError: names the option and its bounds.
    """
    for pattern, (least, most) in BOUNDS.items():
        if re.fullmatch(pattern, name) and not least <= value <= most:
            raise UserError(f"its option {name} is {value}, and models have from {least} to {most}")
