"""Files of results, and the pages whose tables are made from them."""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hyptrans.support import provenance
from hyptrans.support.errors import UserError
from hyptrans.support.files import write_whole
from hyptrans.support.logs import quiet

_MARKER = "<!-- {name}: {end} -->"
RESULTS = "results"
"""Name of a recipe's file of results and of its block in the README."""
BEGIN = _MARKER.format(name=RESULTS, end="begin")
NOT_MEASURED = "Not measured yet."
Results = Sequence[Mapping[str, Any]]
"""Lines of a file of results."""
_COPIES = re.compile(r"encoder\.layers\.\d+\.(in_proj|out_proj|fc1|fc2)_(weight|bias)$")
"""Copies of its maps that an encoder layer of fairseq's keeps for a kernel of inference."""
_PACKAGES = ("torch", "fairseq", "geoopt", "sentencepiece", "sacrebleu", "numpy")


def surroundings() -> dict[str, Any]:
    """Return what else a number depends on: versions, cores, and the code's commit, if any."""
    versions = provenance.versions(*_PACKAGES)
    return {"versions": versions, "cpu_cores": os.cpu_count(), "commit": provenance.commit()}


def count_parameters(checkpoint: Path, user_dir: str = "hyptrans") -> int:
    """Count the learned numbers of a model; what two of its parts share counts once."""
    with quiet():
        # slow to import, and of no use where only tables are made
        import hyptrans.fairseq  # noqa: F401

        # isort: split
        from fairseq import checkpoint_utils, utils

        utils.import_user_module(argparse.Namespace(user_dir=user_dir))
        models, _ = checkpoint_utils.load_model_ensemble([str(checkpoint)])
    return learned_numbers(models[0])


def learned_numbers(model: Any) -> int:
    """Count the parameters of a model of fairseq's or ours, without copies for its fused kernel."""
    return sum(one.numel() for name, one in model.named_parameters() if not _COPIES.match(name))


def made_by(lines: Results) -> str:
    """Say which code made the runs: versions of torch and fairseq, and how many commits."""
    versions = [line["versions"] for line in lines if "versions" in line]
    several = (
        sorted({one[name] for one in versions if name in one}) for name in ("torch", "fairseq")
    )
    torch, fairseq = (" and ".join(found) for found in several)
    named = " ".join(line["commit"] or "" for line in lines if "commit" in line)
    commits = set(re.findall(r"\b[0-9a-f]{40}\b", named))
    of = "one commit" if len(commits) == 1 else f"{len(commits)} commits"
    return f"runs of {of}, torch {torch}, fairseq {fairseq}"


def read_json(path: Path) -> Any:
    """Read a file of JSON."""
    return json.loads(path.read_text(encoding="utf-8"))


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Read a file of one JSON object a line; no file means no lines.

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


def put_into(page: Path, block: str, name: str = RESULTS) -> bool:
    """Replace what is between the markers of a name in a page; False if it was the same.

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
    """Write a file; False if it was the same."""
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return False
    write_whole(path, text)
    return True
