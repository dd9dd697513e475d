"""One configuration per model: a file of ``fairseq-train`` flags in each recipe."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hyptrans.support.errors import UserError

ENDING = ".args"
_UPDATES = "--max-update"


@dataclass(frozen=True)
class Model:
    """A model of a recipe: what folders and tables call it, and the flags that train it."""

    name: str
    flags: tuple[str, ...]

    def flags_for(self, *, updates: int) -> list[str]:
        """The flags with ``{updates}``, for schedules that end, filled in."""
        return [flag.replace("{updates}", str(updates)) for flag in self.flags]

    @property
    def architecture(self) -> str:
        """What ``--arch`` says."""
        words = [word for flag in self.flags for word in flag.split("=", 1)]
        return words[words.index("--arch") + 1]

    @property
    def updates(self) -> int:
        """The updates that its own flags ask for.

        Raises:
            UserError: they name no number.
        """
        if _UPDATES not in self.flags:
            raise UserError(f"{self.name}{ENDING} names no {_UPDATES}: give --updates")
        return int(self.flags[self.flags.index(_UPDATES) + 1])


def configurations(recipe: Path) -> dict[str, Path]:
    """The ``.args`` files of a recipe by name; many are sorted into folders, one for each size."""
    return {path.stem: path for path in sorted(recipe.rglob(f"*{ENDING}"))}


def available(recipe: Path) -> list[str]:
    """The models that a recipe has a configuration for."""
    return sorted(configurations(recipe))


def read_models(recipe: Path, names: Iterable[str]) -> list[Model]:
    """Read ``NAME.args`` of each name; ``#`` starts a comment in them.

    A file without ``--arch`` is that of the architecture it is named after.

    Raises:
        UserError: there is none for a name, or no name.
    """
    names = [name for name in names if name]
    known = configurations(recipe)
    wrong = [name for name in names if name not in known]
    if wrong or not names:
        what = f"no configuration for {', '.join(wrong)}" if wrong else "no model was named"
        raise UserError(f"--archs: {what}; this recipe has {', '.join(sorted(known))}")
    return [_read(known[name]) for name in dict.fromkeys(names)]


def _read(path: Path) -> Model:
    flags = shlex.split(path.read_text(encoding="utf-8"), comments=True)
    if not any(flag.split("=")[0] == "--arch" for flag in flags):
        flags = ["--arch", path.stem, *flags]
    return Model(path.stem, tuple(flags))
