"""Learning curves out of what ``fairseq-train`` and ``hyptrans train`` print and keep."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from hyptrans.support.errors import UserError
from hyptrans.support.files import read_json

_LINE = re.compile(r"(?:\| |^)(train_inner|valid) \|(.*)")
# "loss=6.9," in --log-format simple, "| loss 6.9 |" in what is printed at the end of a validation
_PAIR = re.compile(r"\b([a-z_]+)[= ](-?[\d.]+(?:e[-+]?\d+)?|inf|nan)\b")
_OWN = re.compile(r"^update (\d+): validation perplexity ([\d.]+), BLEU ([\d.]+)$", re.MULTILINE)
_UPDATES = "num_updates"
_LARGEST = 1e100
"""Above it, differences need not be finite."""
PERPLEXITY, BLEU = "validation perplexity", "validation BLEU"
METRICS = {
    "train_inner": {"loss": "training loss"},
    "valid": {"loss": "validation loss", "ppl": PERPLEXITY, "bleu": BLEU},
}
"""What is read of the two kinds of fairseq's lines, and what charts call it."""
_STATES = "checkpoint-[0-9]*/trainer_state.json"
_HISTORY = {"loss": "training loss", "eval_ppl": PERPLEXITY, "eval_bleu": BLEU}
"""What is read of a checkpoint of ``hyptrans train``."""


@dataclass(frozen=True)
class Course:
    """How one training went.

    Attributes:
        name: of the training.
        curves: value by number of updates, for each title of ``METRICS``.
    """

    name: str
    curves: dict[str, dict[int, float]] = field(default_factory=dict)

    def add(self, title: str, updates: int, value: float) -> None:
        """Add a point; of an update the later one counts, as where a part was trained again."""
        self.curves.setdefault(title, {})[updates] = value

    def go_on(self, other: "Course") -> None:
        """Add the points of the part of this training that came next."""
        for title, points in other.curves.items():
            self.curves.setdefault(title, {}).update(points)


def read_log(path: Path, name: str | None = None) -> Course:
    """Read a training.

    Args:
        path: what ``fairseq-train`` printed, in ``--log-format`` simple, json or tqdm; what
            ``hyptrans train`` printed, without losses; or the folder that it trained in.
        name: of the training, by default the file's.

    Raises:
        UserError: no such file, or nothing in it is of a training.
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
        # not true of NaN either
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
    """Read what a checkpoint of ``hyptrans train`` has of its course, which is all of it."""
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
