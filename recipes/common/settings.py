"""Read each model's ``fairseq-train`` flags from a recipe's settings file.

``python -m recipes.common.settings RECIPE MODEL | xargs fairseq-train data-bin …`` uses them.
"""

import argparse
import shlex
import sys
from collections.abc import Iterable
from configparser import ConfigParser
from fnmatch import fnmatchcase
from pathlib import Path

from hyptrans.support.errors import UserError, run_command

FILE = "models.ini"

Flags = dict[str, str | None]
"""Values by ``fairseq-train`` flag; None for a flag without a value."""


def in_name(value: float) -> str:
    """Format a number as in the names of trainings."""
    return f"{value:g}".replace(".", "p")


def words(flags: Flags, updates: int) -> list[str]:
    """Return the flags as words of a command, with ``{updates}`` of schedules filled in."""
    found = [word for pair in flags.items() for word in pair if word is not None]
    return [word.replace("{updates}", str(updates)) for word in found]


def read_models(recipe: Path, names: Iterable[str]) -> dict[str, Flags]:
    """Read the flags of each named model.

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
    shared = sections["*"] if sections.has_section("*") else {}
    found: dict[str, Flags] = {}
    for name in names:
        flags: Flags = {"arch": name}
        for section, own in sections.items():
            if any(fnmatchcase(name, pattern) for pattern in section.split()):
                flags |= own
        # a model's own flags come before the shared ones
        ordered = sorted(flags, key=lambda flag: flag in shared)
        found[name] = {f"--{flag}": flags[flag] for flag in ordered}
    return found


def main() -> None:
    """Print the flags of the model named on the command line.

    Raises:
        UserError: the flags contain no number of updates, which is an option of the recipe.
    """
    recipes = Path(__file__).resolve().parents[1]
    known = sorted(path.parent.name for path in recipes.glob(f"*/{FILE}"))
    parser = argparse.ArgumentParser(
        "python -m recipes.common.settings",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("recipe", choices=known, metavar="RECIPE", help=", ".join(known))
    parser.add_argument("model", metavar="MODEL", help=f"a name that fits its {FILE}")
    args = parser.parse_args()
    recipe, name = args.recipe, args.model
    flags = read_models(recipes / recipe, [name])[name]
    updates = flags.get("--max-update")
    if updates is None:
        command = f"python -m recipes.{recipe} --archs {name} --updates N"
        raise UserError(f"{FILE} names no max-update of {name}: train it by {command}")
    print(shlex.join(words(flags, int(updates))))


if __name__ == "__main__":
    sys.exit(run_command(main, stopped=""))
