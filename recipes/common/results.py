"""``results.json`` and the tables made from it; no number of a table is typed by hand."""

from __future__ import annotations

import argparse
import json
import os
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hyptrans.support import provenance
from hyptrans.support.errors import UserError
from hyptrans.support.files import write_json, write_whole
from hyptrans.support.logs import quiet

_MARKER = "<!-- {name}: {end} -->"
RESULTS = "results"
"""What a recipe's file and block of results are called, where it has one."""
BEGIN, END = (_MARKER.format(name=RESULTS, end=end) for end in ("begin", "end"))
NOT_MEASURED = "Not measured yet."
Results = Sequence[Mapping[str, Any]]
"""Lines of a file of results."""
_PACKAGES = ("torch", "fairseq", "geoopt", "sentencepiece", "sacrebleu", "numpy")


def surroundings() -> dict[str, Any]:
    """What else a number depends on: versions, cores, and the commit, if the code is in one."""
    versions = provenance.versions(*_PACKAGES)
    return {"versions": versions, "cpu_cores": os.cpu_count(), "commit": provenance.commit()}


def count_parameters(checkpoint: Path, user_dir: str = "hyptrans") -> int:
    """Learned numbers of a model of a plug-in; what two of its parts share counts once."""
    with quiet():
        # slow to import, and of no use where only tables are made
        import hyptrans.fairseq  # noqa: F401

        # isort: split
        from fairseq import checkpoint_utils, utils

        from hyptrans.inference.describe import learned_numbers

        utils.import_user_module(argparse.Namespace(user_dir=user_dir))
        models, _ = checkpoint_utils.load_model_ensemble([str(checkpoint)])
    return learned_numbers(models[0])


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Read a file of one JSON object a line; none where it is missing.

    Raises:
        UserError: a line is something else.
    """
    if not path.exists():
        return []
    lines = []
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            line = json.loads(text)
        except ValueError:
            line = None
        if not isinstance(line, dict):
            raise UserError(f"{path}, line {number} is no JSON object: mend it or take it out")
        lines.append(line)
    return lines


def put_into(readme: Path, block: str, name: str = RESULTS) -> bool:
    """Replace what is between the markers of a name in a README; False if it was the same.

    Raises:
        UserError: the markers are missing.
    """
    text = readme.read_text(encoding="utf-8")
    first, last = (_MARKER.format(name=name, end=end) for end in ("begin", "end"))
    before, begin, rest = text.partition(first)
    _, end, after = rest.partition(last)
    if not (begin and end):
        raise UserError(f"{readme} lacks the lines {first} and {last}")
    return write_changed(readme, f"{before}{first}\n{block}\n{last}{after}")


def write_changed(path: Path, text: str) -> bool:
    """Write a file; False if it was the same."""
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return False
    write_whole(path, text)
    return True


def spread(values: Sequence[float], decimals: int = 1) -> str:
    """Mean and, of several, their standard deviation, for a table."""
    mean = f"{statistics.fmean(values):.{decimals}f}"
    return f"{mean} ± {statistics.stdev(values):.{decimals}f}" if len(values) > 1 else mean


def publish(recipe: Path, found: Mapping[str, Any], table: str, name: str = RESULTS) -> None:
    """Put results and table into the folder of a recipe, which may have several by name."""
    write_json(recipe / f"{name}.json", found)
    put_into(recipe / "README.md", table, name)
