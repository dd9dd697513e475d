"""The version that wrote a checkpoint, and a check that this one reads it."""

import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from hyptrans import __version__
from hyptrans.support.errors import UserError

KEY = "version"
"""Name of the model's version buffer; fairseq's moving averages omit buffers of that name."""
BEFORE = (0, 1, 0)
"""The version assumed for checkpoints that record none."""
OLDEST = (0, 2)
"""Major and minor number of the first version whose checkpoints this one reads."""


def this_version() -> Tensor:
    """Return major, minor and patch as three integers ``[3]``."""
    # the name of a pre-release has more than numbers
    return torch.tensor([int(number) for number in re.findall(r"\d+", __version__)[:3]])


def check_version(parameters: Mapping[str, Any]) -> None:
    """Refuse a checkpoint of a version whose parameters or options mean something else.

    This version reads checkpoints of all versions from :data:`OLDEST` on, and of later versions
    that differ only in the last number.

    Args:
        parameters: the model's part of a checkpoint.

    Raises:
        UserError: this version cannot read it; the message names the version that wrote it.
    """
    found = parameters.get(KEY)
    known = isinstance(found, Tensor) and found.shape == (3,)
    written = tuple(found.tolist()) if known else BEFORE  # type: ignore[union-attr]
    if not OLDEST <= written[:2] <= tuple(this_version().tolist()[:2]):
        name = ".".join(map(str, written))
        raise UserError(
            f"it was written by hyptrans {name}, whose parameters and options differ from those "
            f"of {__version__}: train the model again, or install {name} to use it"
        )
