"""Read results, describe what made them, write tables of them, and put these into pages."""

import argparse
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from hyptrans.support import files, provenance, tables
from hyptrans.support.errors import UserError
from hyptrans.support.logs import quiet
from recipes.common.seeds import spread

_MARKER = "<!-- {name}: {end} -->"
RESULTS = "results"
"""Name of a recipe's results file and of its block in the README."""
BEGIN = _MARKER.format(name=RESULTS, end="begin")
LINES = "results.jsonl"
NOT_MEASURED = "Not measured yet."
Results = Sequence[Mapping[str, Any]]
"""Lines of a results file."""
_COPIES = re.compile(r"encoder\.layers\.\d+\.(in_proj|out_proj|fc1|fc2)_(weight|bias)$")
"""Copies of its weights that a fairseq encoder layer keeps for a fused inference kernel."""
_PACKAGES = ("torch", "fairseq", "geoopt", "sentencepiece", "sacrebleu", "numpy")


def surroundings() -> dict[str, Any]:
    """Return what else a result depends on: versions, cores, and the code's commit, if any."""
    versions = provenance.versions(*_PACKAGES)
    return {"versions": versions, "cpu_cores": os.cpu_count(), "commit": provenance.commit()}


def count_parameters(checkpoint: Path, user_dir: str) -> int:
    """Count a model's learned parameters; shared parameters count once."""
    with quiet():
        # slow to import, and not needed for making tables
        import hyptrans.fairseq  # noqa: F401

        # isort: split
        from fairseq import checkpoint_utils, utils

        utils.import_user_module(argparse.Namespace(user_dir=user_dir))
        models, _ = checkpoint_utils.load_model_ensemble([str(checkpoint)])
    return learned_numbers(models[0])


def learned_numbers(model: Any) -> int:
    """Count the parameters of a fairseq or hyptrans model, without copies for fused kernels."""
    return sum(one.numel() for name, one in model.named_parameters() if not _COPIES.match(name))


def made_by(lines: Results) -> str:
    """Describe the code of the runs: versions of torch and fairseq, and number of commits."""
    versions = [line["versions"] for line in lines if "versions" in line]
    several = (
        sorted({one[name] for one in versions if name in one}) for name in ("torch", "fairseq")
    )
    torch, fairseq = (" and ".join(found) for found in several)
    named = " ".join(line["commit"] or "" for line in lines if "commit" in line)
    commits = set(re.findall(r"\b[0-9a-f]{40}\b", named))
    of = "one commit" if len(commits) == 1 else f"{len(commits)} commits"
    return f"runs of {of}, torch {torch}, fairseq {fairseq}"


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object from a file; raise ``UserError`` if it is damaged."""
    try:
        return files.read_json(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"{path} cannot be read: {error}") from error


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Read a file with one JSON object per line; a missing file has no lines.

    Raises:
        UserError: a line is not a JSON object.
    """
    lines: list[dict[str, Any]] = []
    for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            lines.append(files.read_json(text))
        except ValueError as error:
            where = f"{path}, line {len(lines) + 1}"
            raise UserError(f"{where} is not a JSON object: correct or remove it") from error
    return lines


def with_values(lines: Results, **values: object) -> list[Mapping[str, Any]]:
    """Return the lines whose fields have these values."""
    return [line for line in lines if all(line.get(key) == x for key, x in values.items())]


def put_into(page: Path, block: str, name: str = RESULTS) -> bool:
    """Replace the text between a page's markers of this name; return False if it was the same.

    Raises:
        UserError: the markers are missing.
    """
    text = page.read_text(encoding="utf-8")
    first, last = (_MARKER.format(name=name, end=end) for end in ("begin", "end"))
    head, begin, rest = text.partition(first)
    _, end, tail = rest.partition(last)
    if not (begin and end):
        raise UserError(f"{page} lacks the lines {first} and {last}")
    return write_changed(page, f"{head}{first}\n{block}\n{last}{tail}")


def write_changed(path: Path, text: str) -> bool:
    """Write a file if its text changes; return whether it did."""
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return False
    files.write_whole(path, text)
    return True


def markdown(frame: pd.DataFrame, forms: Mapping[str, str] | None = None, *, texts: int = 1) -> str:
    """Write a table as Markdown.

    Args:
        frame: a list in a cell is written as mean and standard deviation, a missing value as empty.
        forms: formats of cells by column; for lists, the format of both numbers.
        texts: number of columns that are text, at the left.
    """
    forms = forms or {}
    columns = [[cell(value, forms.get(name, "")) for value in frame[name]] for name in frame]
    return tables.markdown([*frame], [*zip(*columns, strict=True)], texts=texts)


def cell(value: Any, form: str = "") -> str:
    """Write a number, the mean ± standard deviation of a list, or nothing for a missing value."""
    if isinstance(value, list):
        return spread(value, form or ".1f")
    if isinstance(value, str):
        return value
    return "" if pd.isna(value) else format(value, form)


def rate(value: float, is_open: bool) -> str:
    """Write a learning rate; brackets mean that it is not tuned."""
    return f"({value:g})" if is_open else f"{value:g}"
