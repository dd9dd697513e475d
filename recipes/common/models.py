"""One configuration per model: a file of ``fairseq-train`` flags beside each recipe."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hyptrans.support.errors import UserError

ENDING = ".args"


@dataclass(frozen=True)
class Model:
    """A model of a recipe: the name of its architecture and the flags that train it."""

    arch: str
    flags: tuple[str, ...]

    def flags_for(self, *, updates: int) -> list[str]:
        """The flags with ``{updates}``, for schedules that end, filled in."""
        return [flag.replace("{updates}", str(updates)) for flag in self.flags]


def available(recipe: Path) -> list[str]:
    """The architectures that a recipe has a configuration for."""
    return sorted(path.stem for path in recipe.glob(f"*{ENDING}"))


def read_models(recipe: Path, names: Iterable[str]) -> list[Model]:
    """Read configurations; ``#`` starts a comment in them.

    Raises:
        UserError: there is none for a name, or no name.
    """
    names = [name for name in names if name]
    known = available(recipe)
    wrong = [name for name in names if name not in known]
    if wrong or not names:
        what = f"no configuration for {', '.join(wrong)}" if wrong else "no architecture was named"
        raise UserError(f"--archs: {what}; this recipe has {', '.join(known)}")
    return [_read(recipe / f"{name}{ENDING}") for name in dict.fromkeys(names)]


def _read(path: Path) -> Model:
    flags = shlex.split(path.read_text(encoding="utf-8"), comments=True)
    return Model(path.stem, ("--arch", path.stem, *flags))
