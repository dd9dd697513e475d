"""Write the table of each recipe's README from its recorded results; no score is typed by hand."""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

# a recipe is run as a file, and the recipes are not installed
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from hyptrans.support.errors import UserError, run_command
from recipes.common import results

HERE = Path(__file__).resolve().parent


def block_for(folder: Path) -> str:
    """What belongs between the markers of a recipe's README."""
    recorded, lines = folder / "results.json", folder / "results.jsonl"
    found: Any
    script = folder / "run.py"
    if lines.exists():
        found = results.read_lines(lines)
    elif recorded.exists():
        found = json.loads(recorded.read_text(encoding="utf-8"))
        script = folder / found.get("script", "run.py")
    else:
        return results.NOT_MEASURED
    spec = importlib.util.spec_from_file_location(f"{folder.name}_{script.stem}", script)
    if spec is None or spec.loader is None:
        raise UserError(f"{script} cannot be loaded; it makes the table")
    recipe = importlib.util.module_from_spec(spec)
    # dataclasses look their module up
    sys.modules[spec.name] = recipe
    spec.loader.exec_module(recipe)
    return str(recipe.table(found))


def with_tables() -> list[Path]:
    """The READMEs that have a place for a table."""
    readmes = sorted(HERE.glob("*/README.md"))
    return [path for path in readmes if results.BEGIN in path.read_text(encoding="utf-8")]


def main() -> None:
    """Write all tables."""
    argparse.ArgumentParser(
        description=__doc__, epilog="example: python recipes/tables.py", allow_abbrev=False
    ).parse_args()
    for readme in with_tables():
        changed = results.put_into(readme, block_for(readme.parent))
        print(f"{readme.relative_to(HERE)}: {'written' if changed else 'up to date'}")


if __name__ == "__main__":
    sys.exit(run_command(main, stopped=""))
