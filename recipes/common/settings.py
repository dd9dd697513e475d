"""What a recipe trains its models with: flags of ``fairseq-train``, in one file a recipe."""

from __future__ import annotations

from collections.abc import Iterable
from configparser import ConfigParser
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from hyptrans.support.errors import UserError

FILE = "models.ini"
_UPDATES = "--max-update"

Flags = dict[str, str | None]
"""Values by flag of ``fairseq-train``, None of a flag that takes no value."""


def in_name(value: float) -> str:
    """A number as the names of trainings have it."""
    return f"{value:g}".replace(".", "p")


@dataclass(frozen=True)
class Model:
    """A model of a recipe: what folders and tables call it, and the flags that train it."""

    name: str
    flags: Flags

    def flags_for(self, updates: int) -> list[str]:
        """Words of a command, with ``{updates}``, for schedules that end, filled in."""
        words = [word for pair in self.flags.items() for word in pair if word is not None]
        return [word.replace("{updates}", str(updates)) for word in words]

    @property
    def updates(self) -> int:
        """The updates that its own flags ask for.

        Raises:
            UserError: they name no number.
        """
        found = self.flags.get(_UPDATES)
        if found is None:
            raise UserError(f"{FILE} names no max-update of {self.name}: give --updates")
        return int(found)


def read_models(recipe: Path, names: Iterable[str]) -> list[Model]:
    """Read the settings of each name.

    Raises:
        UserError: there are none for a name, or no name.
    """
    names = [name for name in names if name]
    parser = _parsed(recipe)
    known = _names(parser)
    wrong = [name for name in names if name not in known]
    if wrong or not names:
        what = f"no settings for {', '.join(wrong)}" if wrong else "no model was named"
        raise UserError(f"--archs: {what}; this recipe has {', '.join(sorted(known))}")
    return [_read(parser, name) for name in dict.fromkeys(names)]


def _parsed(recipe: Path) -> ConfigParser:
    parser = ConfigParser(
        delimiters=("=",),
        comment_prefixes=("#",),
        default_section="",
        allow_no_value=True,
        interpolation=None,
    )
    with open(recipe / FILE, encoding="utf-8") as file:
        parser.read_file(file)
    return parser


def _names(parser: ConfigParser) -> set[str]:
    return {name for section in parser for name in section.split() if "*" not in name}


def _read(parser: ConfigParser, name: str) -> Model:
    """Merge the sections of a model; what is its own stands before what all share."""
    flags: Flags = {"arch": name}
    for section, given in parser.items():
        if any(fnmatchcase(name, pattern) for pattern in section.split()):
            flags |= given
    shared = parser["*"] if parser.has_section("*") else {}
    ordered = sorted(flags, key=lambda flag: flag in shared)
    return Model(name, {f"--{flag}": flags[flag] for flag in ordered})
