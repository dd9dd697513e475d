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
    """A model of a recipe: what folders and tables call it, and the flags that train it."""

    name: str
    flags: tuple[str, ...]

    def flags_for(self, *, updates: int) -> list[str]:
        """The flags with ``{updates}``, for schedules that end, filled in."""
        return [flag.replace("{updates}", str(updates)) for flag in self.flags]


def available(recipe: Path) -> list[str]:
    """The models that a recipe has a configuration for."""
    return sorted(path.stem for path in recipe.glob(f"*{ENDING}"))


def read_models(recipe: Path, names: Iterable[str]) -> list[Model]:
    """Read ``NAME.args`` of each name; ``#`` starts a comment in them.

    A file without ``--arch`` is that of the architecture it is named after.

    Raises:
        UserError: there is none for a name, or no name.
    """
    names = [name for name in names if name]
    known = available(recipe)
    wrong = [name for name in names if name not in known]
    if wrong or not names:
        what = f"no configuration for {', '.join(wrong)}" if wrong else "no model was named"
        raise UserError(f"--archs: {what}; this recipe has {', '.join(known)}")
    return [_read(recipe / f"{name}{ENDING}") for name in dict.fromkeys(names)]


def _read(path: Path) -> Model:
    flags = shlex.split(path.read_text(encoding="utf-8"), comments=True)
    if not any(flag.split("=")[0] == "--arch" for flag in flags):
        flags = ["--arch", path.stem, *flags]
    return Model(path.stem, tuple(flags))
