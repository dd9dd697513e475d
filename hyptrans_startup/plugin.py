"""The plug-in that the hook comes with: its name, and what it hands over when it is imported.

Nothing else in this package knows which plug-in that is.
"""

import sys
from collections.abc import Mapping

PACKAGE = "hyptrans"
"""Its name and its command's; importing ``PACKAGE.fairseq`` registers its models."""

bounds: dict[str, tuple[float, float]] = {}
"""Lowest and highest value of its own options, by name."""


def register(*, option_bounds: Mapping[str, tuple[float, float]]) -> None:
    """Take what the hook must know to check a configuration of the plug-in's models.

    Args:
        option_bounds: lowest and highest value of options of the plug-in, by name.
    """
    bounds.update(option_bounds)


def is_registered() -> bool:
    """Whether the plug-in's models are known to fairseq."""
    return f"{PACKAGE}.fairseq" in sys.modules
