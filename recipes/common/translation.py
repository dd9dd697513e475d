"""The steps of a recipe: prepare, train, average, validate, translate."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from hyptrans.support.errors import UserError
from hyptrans.support.files import remove, sha256, write_json
from hyptrans.support.steps import Step
from recipes.common import results
from recipes.common.commands import ROOT, execute, portable, say
from recipes.common.settings import Model

# fairseq writes a million as 1e+06
_NUMBER = r"(\d[\d.]*(?:e[+-]?\d+)?|inf|nan)"
_UPDATE = re.compile(rf"\| train_inner \|.* ppl={_NUMBER},.* ups=([\d.]+),.* num_updates=(\d+)")
_VALID = re.compile(rf"\| valid \|.*\| ppl {_NUMBER} .*\| num_updates (\d+)")
_PERPLEXITY = re.compile(rf"\| valid \| .*\| ppl {_NUMBER}(?!\S)")
_WALL = re.compile(r"\| train_inner \|.* wall=(\d+)")
# messages of hyptrans, fairseq and fairseq's loss scaling
_DIVERGED = re.compile(r"gradients are nan|loss is probably exploding", re.IGNORECASE)
_SAVED = 50
"""Checkpoints to average are at most 1 / ``_SAVED`` of a training apart; Vaswani et al. 2017,
sec. 6.1, take ten minutes of twelve hours."""
_NOTE = "training.json"
"""File in a training's folder that records the training's command and data."""
CANDIDATES = ROOT / "recipes" / "study" / "candidates"
Search = tuple[int, str]
"""Beam size (number of hypotheses) and test set."""
MOSES = ("--remove-bpe", "subword_nmt", "--tokenizer", "moses")
"""Flags that turn subwords of Moses tokens back into text."""


def plug_in(model: str) -> str:
    """Return a model's ``--user-dir``: the package, or the study's candidates."""
    return str(CANDIDATES) if (CANDIDATES / f"{model}.py").is_file() else "hyptrans"


@dataclass(frozen=True)
class Run:
    """What the commands of one recipe share.

    Attributes:
        threads: CPU threads of each command that computes.
        user_dir: fairseq's plug-in with the architectures.
        save_every: updates between the checkpoints that an interrupted training resumes from; 0:
            no checkpoints, the training starts anew.
        averaged: translate with the average of this many last checkpoints; 1: with one.
        train_flags: further flags of every training.
        text_flags: flags that join subwords to text.
        length_limits: flags that limit the length of a translation.
    """

    out: Path
    source: str
    target: str
    seed: int
    updates: int
    threads: int
    user_dir: str = "hyptrans"
    save_every: int = 0
    averaged: int = 1
    train_flags: Sequence[str] = ()
    text_flags: Sequence[str] = ("--remove-bpe", "sentencepiece")
    # a translation that never ends would take as long as hundreds that do
    length_limits: Sequence[str] = ("--max-len-a", "2", "--max-len-b", "10")

    @property
    def data(self) -> Path:
        """Return the folder that ``hyptrans prepare`` writes, with ``data-bin`` and ``raw``."""
        return self.out / "data"

    @property
    def _shared(self) -> list[str]:
        return [str(self.data / "data-bin"), "--user-dir", self.user_dir]

    def references(self, subset: str = "test") -> Path:
        """Return the file with a test set's raw target side."""
        return self.data / "raw" / f"{subset}.{self.target}"

    def output(self, name: str, search: Search) -> Path:
        """Return the file with a training's translations."""
        beam, subset = search
        stem = f"{name}_beam{beam}" if subset == "test" else f"{name}_{subset}_beam{beam}"
        return self.out / stem / f"generate-{subset}.txt"

    def checkpoint(self, name: str) -> Path:
        """Return the checkpoint of a training that translates."""
        if self.averaged > 1:
            return self.out / name / "average.pt"
        return self.out / name / "checkpoint_last.pt"

    def train(self, model: Model) -> list[str]:
        """Return the command of a training."""
        command = ["fairseq-train", *self._shared, *model.flags_for(self.updates)]
        command += ["--seed", str(self.seed), "--max-update", str(self.updates)]
        command += ["--save-dir", str(self.out / model.name), "--no-epoch-checkpoints"]
        command += ["--log-format", "simple", "--log-interval", "50"]
        command += ["--num-workers", "0"]  # the data fit into memory: no need for a second process
        every = self.save_every
        if self.averaged > 1:
            every = min(every or self.updates, max(1, self.updates // _SAVED))
        if every:
            command += ["--save-interval-updates", str(every)]
            command += ["--keep-interval-updates", str(self.averaged)]
        return [*command, *self.train_flags]

    def average(self, name: str) -> list[str]:
        """Return the command that averages the last checkpoints of a training."""
        out = self.checkpoint(name)
        command = ["python", "-m", "hyptrans", "average", str(out.parent)]
        return [*command, "--last", str(self.averaged), "--out", str(out)]

    def validate(self, name: str) -> list[str]:
        """Return the command that measures the perplexity of the validation set."""
        command = ["fairseq-validate", *self._shared, "--task", "translation"]
        command += ["--path", str(self.checkpoint(name)), "--valid-subset", "valid"]
        return [*command, "--max-tokens", "8000", "--log-format", "simple"]

    def generate(self, name: str, search: Search) -> list[str]:
        """Return the command that translates a test set."""
        beam, subset = search
        command = ["fairseq-generate", *self._shared, "--path", str(self.checkpoint(name))]
        command += ["--gen-subset", subset, "--beam", str(beam), "--max-tokens", "8000"]
        command += [*self.length_limits, *self.text_flags, "--scoring", "sacrebleu"]
        return [*command, "--results-path", str(self.output(name, search).parent)]


def prepare(
    run: Run,
    files: Mapping[str, tuple[Path, Path]],
    vocab: int,
    *,
    text: Sequence[str] = ("--raw-text", "--bpe", "sentencepiece"),
    joined: bool = False,
) -> list[str]:
    """Return the command that learns subwords and binarizes.

    Args:
        run: what the commands of the recipe share.
        files: source and target of train, valid and test.
        vocab: pieces of the joint sentencepiece model, or merges of byte-pair encoding.
        text: text options of ``hyptrans prepare text``.
        joined: use one dictionary for both languages.
    """
    command = ["hyptrans", "prepare", "text"]
    for split, pair in files.items():
        command += [f"--{split}", *map(str, pair)]
    command += ["--source-lang", run.source, "--target-lang", run.target]
    command += [*text, "--vocab-size", str(vocab), "--out", str(run.data)]
    return [*command, *(["--joined-dictionary"] if joined else [])]


def step(
    command: Sequence[str],
    name: str,
    out: Path,
    outputs: Sequence[Path],
    *,
    inputs: Sequence[Path] = (),
    resumes: bool = False,
    **how: Any,
) -> Step:
    """Wrap a command in a step whose log is ``out/logs/NAME.log``.

    Args:
        command: the command to execute.
        name: name of the step.
        out: folder of the recipe's run.
        outputs: files that the command writes.
        inputs: files that the command reads; the step runs again if their contents change.
        resumes: the command resumes from its own earlier output, or reports what is in its way.
        how: ``threads`` and ``progress`` of :func:`recipes.common.commands.execute`.
    """
    run = partial(execute, command, out / "logs" / f"{name}.log", **how)

    def anew() -> None:
        for path in outputs:
            remove(path)
        run()

    settings = {"command": portable(command, out), "inputs": [sha256(path) for path in inputs]}
    return Step(name, outputs, run if resumes else anew, settings)


def require_same(run: Run, model: Model, out: Path, prepared: Step) -> dict[str, Any]:
    """Check that a training's folder is new or belongs to the same command on the same data.

    Args:
        run: what the commands of the recipe share.
        model: the model to train.
        out: folder of the recipe's run.
        prepared: the step that made the data.

    Returns:
        The note that records the command and the data.

    Raises:
        UserError: the folder holds a training by another command or of other data.
    """
    folder = run.out / model.name
    note = {"command": portable(run.train(model), out), "data": prepared.settings}
    begun = any(folder.glob("checkpoint*.pt")) or (folder / _NOTE).exists()
    if begun and not ((folder / _NOTE).exists() and results.read_json(folder / _NOTE) == note):
        raise UserError(
            f"{folder} holds a training by another command or of other data: move it away, or "
            "choose another --out"
        )
    return note


def train(run: Run, model: Model, out: Path, prepared: Step) -> tuple[dict[str, Any], bool]:
    """Train, or resume a training from its last checkpoint; see :func:`require_same`.

    Returns:
        The training's part of its line, and False if the training diverged.

    Raises:
        UserError: the training failed, or its folder holds another training.
    """
    note = require_same(run, model, out, prepared)
    write_json(run.out / model.name / _NOTE, note)
    finished, log = True, out / "logs" / f"train_{model.name}.log"
    try:
        execute(run.train(model), log, threads=run.threads, progress=_progress)
    except UserError:
        if not (log.exists() and diverged(log)):
            raise
        finished = False
        say(f"{model.name}: diverged")
    return {"command": note["command"], **course(log)}, finished


def translate(
    run: Run, name: str, out: Path, searches: Iterable[Search], *, validated: bool = False
) -> dict[str, Any]:
    """Translate with a trained model; return the model's part of its line.

    Args:
        run: what the commands of the recipe share.
        name: name of the training.
        out: folder of the recipe's run.
        searches: beam sizes and test sets.
        validated: also measure the perplexity of the validation set.
    """
    commands = {f"average_{name}": run.average(name)} if run.averaged > 1 else {}
    commands |= {f"validate_{name}": run.validate(name)} if validated else {}
    for search in searches:
        commands[f"translate_{run.output(name, search).parent.name}"] = run.generate(name, search)
    for command_name, command in commands.items():
        log = out / "logs" / f"{command_name}.log"
        log.unlink(missing_ok=True)
        execute(command, log, threads=run.threads)
    found: dict[str, Any] = {}
    if validated:
        value = perplexity(out / "logs" / f"validate_{name}.log")
        # JSON has neither infinity nor NaN
        found["valid_perplexity"] = value if math.isfinite(value) else None
    parameters = results.count_parameters(run.checkpoint(name), run.user_dir)
    return {**found, "parameters": parameters}


def _progress(line: str) -> str | None:
    """Return the part of a ``fairseq-train`` log line to show, or None."""
    if found := _UPDATE.search(line):
        return f"update {found[3]}, training perplexity {found[1]}, {found[2]} updates/s"
    if found := _VALID.search(line):
        return f"update {found[2]}, valid perplexity {found[1]}"
    return None


def diverged(log: Path) -> bool:
    """Return whether a failed training ended because its numbers were no longer finite."""
    # look at the last line only: an earlier perplexity may be infinite although, say, the disk
    # was full
    lines = log.read_text(encoding="utf-8").rstrip().splitlines()
    return bool(lines) and _DIVERGED.search(lines[-1]) is not None


def course(log: Path) -> dict[str, Any]:
    """Read the curve of validation perplexity by update and the median speed from a log.

    The log may hold several parts of a training. If an update is logged twice, the later entry
    counts. The curve leaves out perplexities that are not finite.
    """
    text = log.read_text(encoding="utf-8")
    logged = {int(update): float(perplexity) for perplexity, update in _VALID.findall(text)}
    curve = {update: value for update, value in logged.items() if math.isfinite(value)}
    speeds = [float(found[1]) for found in _UPDATE.findall(text)]
    return {
        "curve": sorted(curve.items()),
        "updates_per_second": statistics.median(speeds) if speeds else None,
    }


def seconds(log: Path) -> int | None:
    """Read the seconds that all parts of a training took, as fairseq counts them."""
    found = _WALL.findall(log.read_text(encoding="utf-8"))
    return int(found[-1]) if found else None


def perplexity(log: Path) -> float:
    """Read the perplexity from a validation's log.

    Raises:
        UserError: the log has no perplexity.
    """
    found = _PERPLEXITY.findall(log.read_text(encoding="utf-8"))
    if not found:
        raise UserError(f"{log} names no perplexity")
    return float(found[-1])
