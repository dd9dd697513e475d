"""The steps of a translation recipe: prepare, train, validate, translate, score."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hyptrans.support.errors import UserError
from recipes.common.settings import Model
from recipes.common.steps import ROOT, Step

# fairseq writes a million as 1e+06
_NUMBER = r"(\d[\d.]*(?:e[+-]?\d+)?|inf|nan)"
_UPDATE = re.compile(rf"\| train_inner \|.* ppl={_NUMBER},.* ups=([\d.]+),.* num_updates=(\d+)")
_VALID = re.compile(rf"\| valid \|.*\| ppl {_NUMBER} .*\| num_updates (\d+)")
_PERPLEXITY = re.compile(rf"\| valid \| .*\| ppl {_NUMBER}(?!\S)")
# what hyptrans, fairseq and fairseq's scaling of losses say
_DIVERGED = re.compile(r"gradients are nan|loss is probably exploding", re.IGNORECASE)
_LOG_INTERVAL = 50
_SAVED = 50
"""Checkpoints that are averaged are at most this part of a training apart; ten minutes of twelve
hours in Vaswani et al. 2017, sec. 6.1."""


CANDIDATES = Path(__file__).resolve().parents[1] / "study" / "candidates"
Search = tuple[int, str]
"""Hypotheses that beam search keeps, and the test set."""


def plug_in(model: str) -> str:
    """What ``--user-dir`` of a model is: the package, or the candidates that it has not."""
    return str(CANDIDATES) if (CANDIDATES / f"{model}.py").is_file() else "hyptrans"


@dataclass(frozen=True)
class Run:
    """What the steps of one recipe share.

    Attributes:
        updates: optimizer steps of a training; None: as many as its own flags say.
        threads: CPU threads of each command that computes.
        cpu: keep off the GPU.
        prepared: the step that all trainings are after.
        user_dir: fairseq's plug-in with the architectures.
        save_every: updates between checkpoints, from which a training that was stopped goes on;
            0: there are none, and it starts anew.
        best: translate with the checkpoint of the lowest validation perplexity, not with the last.
        averaged: translate with the average of so many of the last checkpoints; 1: with one.
        train_flags: further flags of every training.
        text_flags: what makes text of subwords again.
        length_limits: flags of the most words that a translation may have.
    """

    out: Path
    source: str
    target: str
    seed: int
    updates: int | None
    threads: int
    cpu: bool
    prepared: str = "prepare"
    user_dir: str = "hyptrans"
    save_every: int = 0
    best: bool = False
    averaged: int = 1
    train_flags: Sequence[str] = ()
    text_flags: Sequence[str] = ("--remove-bpe", "sentencepiece")
    # a sentence that never ends would cost as much time as hundreds that do
    length_limits: Sequence[str] = ("--max-len-a", "2", "--max-len-b", "10")

    @property
    def data(self) -> Path:
        """Folder that ``data-prep/prepare_text.py`` writes, with ``data-bin`` and ``raw``."""
        return self.out / "data"

    @property
    def binary(self) -> str:
        """The binarized data."""
        return str(self.data / "data-bin")

    @property
    def device(self) -> list[str]:
        """What keeps a command off the GPU, if that is asked for."""
        return ["--cpu"] if self.cpu else []

    def references(self, subset: str = "test") -> Path:
        """The raw target side of a test set."""
        return self.data / "raw" / f"{subset}.{self.target}"

    def output(self, name: str, search: Search) -> Path:
        """The file with a training's translations."""
        beam, subset = search
        stem = f"{name}_beam{beam}" if subset == "test" else f"{name}_{subset}_beam{beam}"
        return self.out / stem / f"generate-{subset}.txt"

    def checkpoint(self, name: str) -> Path:
        """The checkpoint of a training to translate with."""
        if self.averaged > 1:
            return self.out / name / "average.pt"
        return self.out / name / f"checkpoint_{'best' if self.best else 'last'}.pt"

    def made_by(self, name: str) -> str:
        """The step that leaves that checkpoint."""
        return f"{'average' if self.averaged > 1 else 'train'}_{name}"

    def updates_of(self, model: Model) -> int:
        """Optimizer steps of a model's training.

        Raises:
            UserError: neither the options nor its flags name them.
        """
        return model.updates if self.updates is None else self.updates


def script(name: str) -> str:
    """A script of ``data-prep``."""
    return str(ROOT / "data-prep" / name)


def prepare(
    run: Run,
    files: Mapping[str, tuple[Path, Path]],
    vocab: int,
    *,
    after: Sequence[str] = (),
    text: Sequence[str] = ("--raw-text", "--bpe", "sentencepiece"),
    joined: bool = False,
) -> Step:
    """Learn subwords and binarize.

    Args:
        run: what the recipe's steps share.
        files: source and target of train, valid and test.
        vocab: pieces of the joint sentencepiece model, or merges of byte-pair encoding.
        after: steps whose output this one reads.
        text: what becomes of the text.
        joined: one dictionary for both languages.
    """
    command = ["python", script("prepare_text.py")]
    for split, pair in files.items():
        command += [f"--{split}", *map(str, pair)]
    command += ["--source-lang", run.source, "--target-lang", run.target]
    command += [*text, "--vocab-size", str(vocab), "--out", str(run.data)]
    command += ["--joined-dictionary"] if joined else []
    inputs = [path for pair in files.values() for path in pair]
    return Step(run.prepared, command, [run.data], after, inputs=inputs)


def token_flags(source: str, target: str) -> list[str]:
    """What makes text of tokens in subwords; Moses' rules are those of the target's language."""
    languages = ["--source-lang", source, "--target-lang", target]
    return ["--remove-bpe", "subword_nmt", "--tokenizer", "moses", *languages]


def train(run: Run, model: Model, *, untrained: bool = False) -> Step:
    """Train a model, or ``untrained``: one update of size 0, which leaves it as it was drawn."""
    name = f"untrained_{model.name}" if untrained else model.name
    save = run.out / name
    updates = run.updates_of(model)
    command = ["fairseq-train", run.binary, "--user-dir", run.user_dir, *model.flags_for(updates)]
    command += ["--seed", str(run.seed), "--max-update", "1" if untrained else str(updates)]
    command += ["--save-dir", str(save), "--no-epoch-checkpoints"]
    command += ["--log-format", "simple", "--log-interval", str(_LOG_INTERVAL)]
    command += ["--num-workers", "0"]  # the data fit into memory: no second process to start
    if untrained:
        command += ["--lr", "0", "--disable-validation"]
    if run.best:
        # of the lowest perplexity; fairseq's own choice has label smoothing in it
        command += ["--best-checkpoint-metric", "nll_loss"]
    every = run.save_every
    if run.averaged > 1 and not untrained:
        every = min(every or updates, max(1, updates // _SAVED))
    if every:
        command += ["--save-interval-updates", str(every)]
        command += ["--keep-interval-updates", str(run.averaged)]
    command += [*run.train_flags, *run.device]
    return Step(
        f"train_{name}",
        command,
        outputs=[save],
        after=[run.prepared],
        threads=run.threads,
        progress=training_progress,
        resumes=bool(run.save_every),
        precious=not untrained,
    )


def average(run: Run, name: str) -> Step:
    """Average the last checkpoints of a training."""
    out = run.checkpoint(name)
    command = ["python", "-m", "hyptrans", "average", str(out.parent)]
    command += ["--last", str(run.averaged), "--out", str(out)]
    return Step(run.made_by(name), command, [out], [f"train_{name}"], run.threads)


def training_progress(line: str) -> str | None:
    """What to show of a line of ``fairseq-train``'s log."""
    if found := _UPDATE.search(line):
        return f"update {found[3]}, training perplexity {found[1]}, {found[2]} updates/s"
    if found := _VALID.search(line):
        return f"update {found[2]}, valid perplexity {found[1]}"
    return None


def diverged(log: Path) -> bool:
    """Whether a training that failed did so as its numbers were no longer finite."""
    # its last word: a perplexity before it may be infinite, and a full disk be the reason
    lines = log.read_text(encoding="utf-8").rstrip().splitlines()
    return bool(lines) and _DIVERGED.search(lines[-1]) is not None


def course(log: Path) -> dict[str, Any]:
    """Curve of validation perplexity by update and median speed, of a training's log.

    What several parts of a training logged is in it; of an update logged twice the later counts,
    and a perplexity that is not finite is no point of it.
    """
    text = log.read_text(encoding="utf-8")
    logged = {int(update): float(perplexity) for perplexity, update in _VALID.findall(text)}
    curve = {update: value for update, value in logged.items() if math.isfinite(value)}
    speeds = [float(found[1]) for found in _UPDATE.findall(text)]
    return {
        "curve": sorted(curve.items()),
        "updates_per_second": statistics.median(speeds) if speeds else None,
    }


def generate(run: Run, name: str, search: Search) -> Step:
    """Translate a test set with a training's checkpoint."""
    beam, subset = search
    folder = run.output(name, search).parent
    command = ["fairseq-generate", run.binary, "--user-dir", run.user_dir]
    command += ["--path", str(run.checkpoint(name)), "--gen-subset", subset]
    command += ["--beam", str(beam), "--max-tokens", "8000", *run.length_limits]
    command += [*run.text_flags, "--scoring", "sacrebleu"]
    command += ["--results-path", str(folder), *run.device]
    return Step(f"translate_{folder.name}", command, [folder], [run.made_by(name)], run.threads)


def chain(
    run: Run,
    model: Model,
    searches: Iterable[Search],
    *,
    validated: bool = False,
    untrained: bool = False,
) -> list[Step]:
    """The steps of a model, the training first; where asked for it is averaged and validated."""
    if untrained:
        # it has one checkpoint
        run = replace(run, averaged=1)
    steps = [train(run, model, untrained=untrained)]
    name = steps[0].name.removeprefix("train_")
    steps += [average(run, name)] if run.averaged > 1 else []
    steps += [validate(run, name)] if validated else []
    return [*steps, *(generate(run, name, search) for search in searches)]


def probe(
    name: str,
    encoders: Mapping[str, Path],
    data: Path,
    trees: Mapping[str, Path],
    out: Path,
    flags: Sequence[str],
    *,
    after: Sequence[str],
    inputs: Sequence[Path] = (),
) -> Step:
    """Probe encoders.

    Args:
        name: of the step.
        encoders: checkpoints by the names that tables have for them.
        data: the folder that all of them were prepared in.
        trees: CoNLL-U of train, dev and test.
        out: folder to write.
        flags: other options of ``python -m probing run``.
        after: steps whose output this one reads.
        inputs: files that it reads and that no step wrote.
    """
    command = ["python", "-m", "probing", "run"]
    for checkpoint in encoders.values():
        command += ["--checkpoint", str(checkpoint)]
    command += ["--data", str(data), "--names", *encoders]
    for split, path in trees.items():
        command += [f"--{split}", str(path)]
    command += [*flags, "--out", str(out)]
    outputs = [out / "results.json", out / "report.html"]
    return Step(name, command, outputs, after, inputs=inputs, work=[out])


def validate(run: Run, name: str) -> Step:
    """Measure the perplexity of the validation set."""
    command = ["fairseq-validate", run.binary, "--user-dir", run.user_dir, "--task", "translation"]
    command += ["--path", str(run.checkpoint(name)), "--valid-subset", "valid"]
    command += ["--max-tokens", "8000", "--log-format", "simple", *run.device]
    return Step(f"validate_{name}", command, [], [run.made_by(name)], run.threads)


def perplexity(log: Path) -> float:
    """What a validation printed.

    Raises:
        UserError: its log has no perplexity.
    """
    found = _PERPLEXITY.findall(log.read_text(encoding="utf-8"))
    if not found:
        raise UserError(f"{log} names no perplexity")
    return float(found[-1])
