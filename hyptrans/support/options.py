"""Options of fairseq's configurations, as dataclass fields."""

from dataclasses import field
from typing import Any


def option(default: Any, about: str) -> Any:
    """A field that fairseq makes a flag of, with its help."""
    return field(default=default, metadata={"help": about})
