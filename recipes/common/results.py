"""Read and add to files of results, and update the pages with tables made from them."""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hyptrans.support import provenance
from hyptrans.support.errors import UserError
from hyptrans.support.files import one_at_a_time, write_whole
from hyptrans.support.logs import quiet

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


def count_parameters(checkpoint: Path, user_dir: str = "hyptrans") -> int:
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


def read_json(path: Path) -> Any:
    """Read a JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Read a file with one JSON object per line; a missing file has no lines.

    Raises:
        UserError: a line is not a JSON object.
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
    write_whole(path, text)
    return True


class Record:
    """The trainings of a recipe, and the lines of those that are done.

    With ``--write-readme`` the lines are those beside the recipe, else those in ``--out``.

    Args:
        recipe: the recipe's folder.
        args: options from :func:`recipes.common.options.recipe_parser`.
        trainings: returns the trainings known from the results so far; the ``name`` of each is
            also the name of its line.
        publish: updates the recipe's pages whenever a line beside the recipe is added.

    Raises:
        UserError: ``--only`` names an unknown training.
    """

    def __init__(
        self,
        recipe: Path,
        args: argparse.Namespace,
        trainings: Callable[[Results], Sequence[Any]],
        publish: Callable[[Results], object],
    ) -> None:
        self.path = (recipe if args.write_readme else args.out) / LINES
        self._trainings, self._only = trainings, args.only
        self._publish = publish if args.write_readme else lambda lines: None
        # read once, because the results themselves may be files of the repository
        self._surroundings = surroundings()
        known = {training.name for training in trainings(self.lines)}
        if wrong := [name for name in args.only or () if name not in known]:
            raise UserError(f"--only: no training is called {', '.join(wrong)}; --list names all")

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Return all recorded lines."""
        return read_lines(self.path)

    def show(self) -> None:
        """Print the names of all trainings and whether each is done."""
        lines = self.lines
        done = {line["name"] for line in lines}
        for training in self._trainings(lines):
            print(f"{training.name}{'  done' if training.name in done else ''}")

    def left(self) -> list[Any]:
        """Return the trainings that the user wants and that are not done."""
        lines = self.lines
        done = {line["name"] for line in lines}
        left = [one for one in self._trainings(lines) if one.name not in done]
        return [one for one in left if self._only is None or one.name in self._only]

    def complete(self, score: Callable[[Any], Mapping[str, Any]]) -> None:
        """Add the line that ``score`` returns for each training that is not done."""
        while left := self.left():
            self.add(score(left[0]))

    def add(self, line: Mapping[str, Any], *, measured: bool = True) -> None:
        """Add a line, unless another process has already added it.

        Args:
            line: a line with a name.
            measured: it was measured here, so record the versions and cores that it depends on.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with one_at_a_time(self.path.parent):
            lines = self.lines
            if line["name"] not in {known["name"] for known in lines}:
                lines.append({**line, **(self._surroundings if measured else {})})
                write_whole(self.path, "".join(json.dumps(entry) + "\n" for entry in lines))
                self._publish(lines)
