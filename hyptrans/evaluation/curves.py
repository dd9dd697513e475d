"""Learning curves from the logs and checkpoints of ``fairseq-train`` and ``hyptrans train``."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from hyptrans.support.errors import UserError
from hyptrans.support.files import read_json

_LINE = re.compile(r"(?:\| |^)(train_inner|valid) \|(.*)")
# "loss=6.9," in --log-format simple, "| loss 6.9 |" at the end of a validation
_PAIR = re.compile(r"\b([a-z_]+)[= ](-?[\d.]+(?:e[-+]?\d+)?|inf|nan)\b")
_OWN = re.compile(r"^update (\d+): validation perplexity ([\d.]+), BLEU ([\d.]+)$", re.MULTILINE)
_UPDATES = "num_updates"
_LARGEST = 1e100
"""Larger values are skipped, as their differences may not be finite."""
PERPLEXITY, BLEU = "validation perplexity", "validation BLEU"
METRICS = {
    "train_inner": {"loss": "training loss"},
    "valid": {"loss": "validation loss", "ppl": PERPLEXITY, "bleu": BLEU},
}
"""Metrics read from both kinds of fairseq's log lines, with their titles in charts."""
_STATES = "checkpoint-[0-9]*/trainer_state.json"
_HISTORY = {"loss": "training loss", "eval_ppl": PERPLEXITY, "eval_bleu": BLEU}
"""Metrics read from a checkpoint of ``hyptrans train``, with their titles in charts."""


@dataclass(frozen=True)
class Course:
    """The course of one training.

    Attributes:
        name: name of the training.
        curves: values by number of updates, for each title in ``METRICS``.
    """

    name: str
    curves: dict[str, dict[int, float]] = field(default_factory=dict)

    def add(self, title: str, updates: int, value: float) -> None:
        """Add a point; it replaces an earlier one of the same update, as after a resumption."""
        self.curves.setdefault(title, {})[updates] = value

    def go_on(self, other: "Course") -> None:
        """Add the points of the next part of this training."""
        for title, points in other.curves.items():
            self.curves.setdefault(title, {}).update(points)


def read_log(path: Path, name: str | None = None) -> Course:
    """Read the course of a training.

    Args:
        path: output of ``fairseq-train``, in ``--log-format`` simple, json or tqdm; output of
            ``hyptrans train``, which has no losses; or the folder of its run.
        name: name of the training, by default the file's.

    Raises:
        UserError: there is no such file, or it has no lines of a training.
    """
    course = Course(name or path.stem)
    if states := {int(one.parent.name.partition("-")[2]): one for one in path.glob(_STATES)}:
        _read_state(states[max(states)], course)
        return course
    if not path.is_file():
        raise UserError(
            f"{path} is not a file, nor the folder of a hyptrans train with a checkpoint: name one "
            "of these"
        )
    text = path.read_text(encoding="utf-8", errors="replace")
    for updates, perplexity, bleu in _OWN.findall(text):
        course.add(PERPLEXITY, int(updates), float(perplexity))
        course.add(BLEU, int(updates), float(bleu))
    for line in text.splitlines():
        found = _LINE.search(line)
        if found is None:
            continue
        values = _values(found[2])
        # NaN fails this test, too
        values = {name: value for name, value in values.items() if abs(value) < _LARGEST}
        if _UPDATES not in values:
            continue
        for metric, title in METRICS[found[1]].items():
            if metric in values:
                course.add(title, int(values[_UPDATES]), values[metric])
    if not course.curves:
        raise UserError(
            f"{path} has no lines of a training: neither fairseq's (train_inner or valid) nor "
            "those of hyptrans train (update N: validation perplexity)"
        )
    return course


def _read_state(path: Path, course: Course) -> None:
    """Read the course from a checkpoint of ``hyptrans train``, which holds all of it."""
    try:
        for line in read_json(path.read_text(encoding="utf-8"))["log_history"]:
            for key in _HISTORY.keys() & line.keys():
                if abs(line[key]) < _LARGEST:
                    course.add(_HISTORY[key], line["step"], line[key])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path} is damaged: {error}") from error


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
