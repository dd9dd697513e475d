"""Learning curves out of fairseq's logs."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from hyptrans.support.errors import UserError
from hyptrans.support.files import read_json

_LINE = re.compile(r"(?:\| |^)(train_inner|valid) \|(.*)")
# "loss=6.9," in --log-format simple, "| loss 6.9 |" in what is printed at the end of a validation
_PAIR = re.compile(r"\b([a-z_]+)[= ](-?[\d.]+(?:e[-+]?\d+)?|inf|nan)\b")
_UPDATES = "num_updates"
_LARGEST = 1e100
"""Above it, differences need not be finite."""
PERPLEXITY = "validation perplexity"
METRICS = {
    "train_inner": {"loss": "training loss"},
    "valid": {"loss": "validation loss", "ppl": PERPLEXITY, "bleu": "validation BLEU"},
}
"""What is read of the two kinds of lines, and what charts call it."""


@dataclass(frozen=True)
class Course:
    """How one training went.

    Attributes:
        name: of the training.
        curves: value by number of updates, for each title of ``METRICS``.
    """

    name: str
    curves: dict[str, dict[int, float]] = field(default_factory=dict)


def read_log(path: Path, name: str | None = None) -> Course:
    """Read the log of a training, in ``--log-format`` simple, json or tqdm.

    Where a part was trained again, as after a stop, the later numbers count.

    Raises:
        UserError: no such file, or nothing in it is of a training.
    """
    if not path.is_file():
        raise UserError(f"{path} is not a file: name what fairseq-train printed")
    course = Course(name or path.stem)
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        found = _LINE.search(line)
        if found is None:
            continue
        values = _values(found[2])
        # not true of NaN either
        values = {name: value for name, value in values.items() if abs(value) < _LARGEST}
        if _UPDATES not in values:
            continue
        for metric, title in METRICS[found[1]].items():
            if metric in values:
                course.curves.setdefault(title, {})[int(values[_UPDATES])] = values[metric]
    if not course.curves:
        raise UserError(f"{path} has no lines of a training (train_inner or valid) of fairseq")
    return course


def _values(text: str) -> dict[str, float]:
    begin = text.find("{")
    if begin >= 0:
        try:
            found = read_json(text[begin:])
        except ValueError:
            return {}
        pairs = [(name.removeprefix("valid_"), value) for name, value in found.items()]
    else:
        pairs = _PAIR.findall(text)
    values = {}
    for name, value in pairs:
        try:
            values[name] = float(value)
        except (TypeError, ValueError, OverflowError):
            continue
    return values
