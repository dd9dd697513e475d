"""Write tables and pictures of the recipes' READMEs from recorded results; no score is typed."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path

from hyptrans.support.errors import run_command
from recipes import first_page
from recipes.common import results
from recipes.probing.tables import CHECKPOINTS, table
from recipes.study.findings.pictures import pictures

HERE = Path(__file__).resolve().parent
STUDY = HERE / "study"
PICTURES = HERE.parent / "docs" / "pictures"


def blocks() -> dict[tuple[Path, str], str]:
    """What belongs between the markers of READMEs, by README and name of the markers."""
    readmes = [path for path in sorted(HERE.glob("*/README.md")) if results.BEGIN in _text(path)]
    probed = HERE / "probing" / f"{CHECKPOINTS}.json"
    return {
        **{(readme, results.RESULTS): block_for(readme.parent) for readme in readmes},
        **first_page.blocks(),
        (probed.parent / "README.md", CHECKPOINTS): table(json.loads(_text(probed))),
    }


def block_for(folder: Path) -> str:
    """The table of a recipe."""
    recorded, lines = folder / "results.json", folder / "results.jsonl"
    if not recorded.exists() and not lines.exists():
        return results.NOT_MEASURED
    found = results.read_lines(lines) if lines.exists() else json.loads(_text(recorded))
    module = "speed" if folder.name == "benchmark" else "__main__"
    return str(importlib.import_module(f"recipes.{folder.name}.{module}").table(found))


def drawings() -> dict[Path, str]:
    """The pictures, SVG by file."""
    studied = pictures(results.read_lines(STUDY / "results.jsonl"))
    shown = {PICTURES / name: text for name, text in first_page.pictures().items()}
    return {**{STUDY / name: text for name, text in studied.items()}, **shown}


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def main() -> None:
    """Write all tables and pictures."""
    argparse.ArgumentParser(
        description=__doc__, epilog="example: python -m recipes.tables", allow_abbrev=False
    ).parse_args()
    for (page, name), block in blocks().items():
        _tell(page, f", {name}", results.put_into(page, block, name))
    for path, text in drawings().items():
        _tell(path, "", results.write_changed(path, text))


def _tell(path: Path, part: str, changed: bool) -> None:
    state = "written" if changed else "up to date"
    print(f"{path.relative_to(HERE.parent)}{part}: {state}")


if __name__ == "__main__":
    sys.exit(run_command(main, stopped=""))
