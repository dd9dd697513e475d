"""Write tables and pictures of the recipes' READMEs from recorded results; no score is typed."""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from hyptrans.support.errors import UserError, run_command
from recipes import first_page
from recipes.common import results
from recipes.probing.tables import CHECKPOINTS, table

HERE = Path(__file__).resolve().parent


def block_for(folder: Path) -> str:
    """What belongs between the markers of a recipe's README."""
    found = _recorded(folder)
    if found is None:
        return results.NOT_MEASURED
    return str(_recipe(folder, found).table(found))


def pictures_for(folder: Path) -> dict[str, str]:
    """The pictures that a recipe draws of its results, SVG by file name."""
    found = _recorded(folder)
    if found is None:
        return {}
    draw = getattr(_recipe(folder, found), "pictures", None)
    return draw(found) if draw else {}


def _recorded(folder: Path) -> Any:
    """The results of a recipe, None where there are none."""
    recorded, lines = folder / "results.json", folder / "results.jsonl"
    if lines.exists():
        return results.read_lines(lines)
    if recorded.exists():
        return json.loads(recorded.read_text(encoding="utf-8"))
    return None


def _recipe(folder: Path, found: Any) -> ModuleType:
    """The script that makes the table."""
    script = folder / (found.get("script", "run.py") if isinstance(found, dict) else "run.py")
    spec = importlib.util.spec_from_file_location(f"{folder.name}_{script.stem}", script)
    if spec is None or spec.loader is None:
        raise UserError(f"{script} cannot be loaded; it makes the table")
    recipe = importlib.util.module_from_spec(spec)
    # dataclasses look their module up
    sys.modules[spec.name] = recipe
    spec.loader.exec_module(recipe)
    return recipe


def named_blocks() -> dict[tuple[Path, str], str]:
    """What belongs between markers of other names, by README and name."""
    probed = HERE / "probing" / f"{CHECKPOINTS}.json"
    return first_page.blocks() | {
        (HERE / "multi30k_en_de" / "README.md", "study"): first_page.study_table(),
        (probed.parent / "README.md", CHECKPOINTS): table(
            json.loads(probed.read_text(encoding="utf-8"))
        ),
    }


def with_tables() -> list[Path]:
    """The READMEs that have a place for a table."""
    readmes = sorted(HERE.glob("*/README.md"))
    return [path for path in readmes if results.BEGIN in path.read_text(encoding="utf-8")]


def main() -> None:
    """Write all tables and pictures."""
    argparse.ArgumentParser(
        description=__doc__, epilog="example: python -m recipes.tables", allow_abbrev=False
    ).parse_args()
    for readme in with_tables():
        changed = results.put_into(readme, block_for(readme.parent))
        drawn = results.put_pictures(readme.parent, pictures_for(readme.parent))
        print(f"{readme.relative_to(HERE)}: {'written' if changed or drawn else 'up to date'}")
    results.put_pictures(HERE.parent / "docs" / "pictures", first_page.pictures())
    for (readme, name), block in named_blocks().items():
        changed = results.put_into(readme, block, name)
        where = readme.relative_to(HERE.parent)
        print(f"{where}, {name}: {'written' if changed else 'up to date'}")


if __name__ == "__main__":
    sys.exit(run_command(main, stopped=""))
