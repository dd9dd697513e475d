"""Write tables and pictures of the recipes' READMEs from recorded results; no score is typed."""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from hyptrans.support import tables
from hyptrans.support.errors import UserError, run_command
from recipes.common import results
from recipes.probing.tables import CHECKPOINTS, table
from recipes.study.findings.table import summary

HERE = Path(__file__).resolve().parent
README = HERE.parent / "README.md"
SPEED_ROWS = (
    ("hybonet_plus", "train", 64, 32),
    ("hybonet_plus", "decode", 64, 32),
    ("hybonet", "train", 64, 32),
    ("hybonet", "decode", 64, 32),
    ("hypformer", "train", 512, 8192),
)
"""Of the table of speed, what the first page shows: architecture, step, width, length."""


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
    study = summary(results.read_lines(HERE / "study" / "results.jsonl"))
    speed = json.loads((HERE / "benchmark" / "results.json").read_text(encoding="utf-8"))
    probed = HERE / "probing" / f"{CHECKPOINTS}.json"
    return {
        (README, "study"): study,
        (README, "speed"): speed_table(speed),
        (HERE / "multi30k_en_de" / "README.md", "study"): study,
        (probed.parent / "README.md", CHECKPOINTS): table(
            json.loads(probed.read_text(encoding="utf-8"))
        ),
    }


def speed_table(found: Mapping[str, Any]) -> str:
    """The rows of ``SPEED_ROWS``."""
    rows = {(row["arch"], row["phase"], row["dim"], row["length"]): row for row in found["rows"]}
    shown = [
        [
            f"{arch}, {step}, width {dim}, {length:,} tokens",
            f"{rows[arch, step, dim, length]['ratio']:.2f}",
        ]
        for arch, step, dim, length in SPEED_ROWS
    ]
    lines = tables.markdown(["step", "times as fast as the twin"], shown)
    return f"{lines}\n\n{found['device']}; measured with version {found['versions']['hyptrans']}"


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
    for (readme, name), block in named_blocks().items():
        changed = results.put_into(readme, block, name)
        where = readme.relative_to(README.parent)
        print(f"{where}, {name}: {'written' if changed else 'up to date'}")


if __name__ == "__main__":
    sys.exit(run_command(main, stopped=""))
