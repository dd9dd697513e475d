"""Read each model's ``fairseq-train`` flags from a recipe's settings file.

``python -m recipes.common.settings RECIPE MODEL | xargs fairseq-train data-bin …`` uses them.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable
from configparser import ConfigParser
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from hyptrans.support.errors import UserError, run_command

FILE = "models.ini"
_UPDATES = "--max-update"

Flags = dict[str, str | None]
"""Values by ``fairseq-train`` flag; None for a flag without a value."""


def in_name(value: float) -> str:
    """Format a number as in the names of trainings."""
    return f"{value:g}".replace(".", "p")


@dataclass(frozen=True)
class Model:
    """A model of a recipe: its name in folders and tables, and the flags that train it."""

    name: str
    flags: Flags

    def flags_for(self, updates: int) -> list[str]:
        """Return the flags as words of a command, with ``{updates}`` of schedules filled in."""
        words = [word for pair in self.flags.items() for word in pair if word is not None]
        return [word.replace("{updates}", str(updates)) for word in words]

    @property
    def updates(self) -> int:
        """Return the number of updates in the model's own flags.

        Raises:
            UserError: the flags contain no such number.
        """
        found = self.flags.get(_UPDATES)
        if found is None:
            raise UserError(f"{FILE} names no max-update of {self.name}: give --updates")
        return int(found)


def read_models(recipe: Path, names: Iterable[str]) -> list[Model]:
    """Read the settings of each named model.

    A section applies to every model that matches one of the section's names; later sections
    override earlier ones.

    Raises:
        UserError: a name has no settings, or there is no name.
    """
    names = [name for name in names if name]
    sections = ConfigParser(
        delimiters=("=",),
        comment_prefixes=("#",),
        default_section="",
        allow_no_value=True,
        interpolation=None,
    )
    with open(recipe / FILE, encoding="utf-8") as file:
        sections.read_file(file)
    known = {name for section in sections for name in section.split() if "*" not in name}
    wrong = [name for name in names if name not in known]
    if wrong or not names:
        what = f"no settings for {', '.join(wrong)}" if wrong else "no model was named"
        raise UserError(f"--archs: {what}; this recipe has {', '.join(sorted(known))}")
    return [_read(sections, name) for name in dict.fromkeys(names)]


def _read(sections: ConfigParser, name: str) -> Model:
    flags: Flags = {"arch": name}
    for section, given in sections.items():
        if any(fnmatchcase(name, pattern) for pattern in section.split()):
            flags |= given
    shared = sections["*"] if sections.has_section("*") else {}
    # a model's own flags come before the shared ones
    ordered = sorted(flags, key=lambda flag: flag in shared)
    return Model(name, {f"--{flag}": flags[flag] for flag in ordered})


def main() -> None:
    """Print the flags of the model named on the command line."""
    recipe, name = sys.argv[1:]
    (model,) = read_models(Path(__file__).resolve().parents[1] / recipe, [name])
    print(shlex.join(model.flags_for(model.updates)))


if __name__ == "__main__":
    sys.exit(run_command(main, stopped=""))
