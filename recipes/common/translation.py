"""The steps of a recipe: prepare, train, average, validate, translate, probe."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hyptrans.support import steps
from hyptrans.support.errors import UserError
from hyptrans.support.files import finite, remove, sha256, write_json
from hyptrans.support.steps import Step
from recipes.common import results, scoring
from recipes.common.commands import ROOT, execute, portable, say
from recipes.common.settings import Flags, words

_SAVED = 50
"""Checkpoints to average are at most 1 / ``_SAVED`` of a training apart; Vaswani et al. 2017,
sec. 6.1, take ten minutes of twelve hours."""
_NOTE = "training.json"
"""File in a training's folder that records the training's command and data."""
CANDIDATES = ROOT / "recipes" / "study" / "candidates"
Search = tuple[int, str]
"""Beam size (number of hypotheses) and test set."""
SENTENCEPIECE = ("--remove-bpe", "sentencepiece")
"""Flags that join subwords to text."""


@dataclass(frozen=True)
class Run:
    """A training, and the commands that train its model and translate with it.

    Attributes:
        out: folder of the recipe's run.
        name: name of the training in folders and tables.
        flags: the model's flags for ``fairseq-train``.
        task: subfolder for data and trainings, if a recipe has several data sets.
        save_every: updates between the checkpoints that an interrupted training resumes from; 0:
            no checkpoints, the training starts anew.
        averaged: number of last checkpoints whose average translates; 1: the last one alone.
        train_flags: further flags of the training, after those of all trainings.
        text_flags: flags that join subwords to text.
        length_limits: flags that limit the length of a translation.
    """

    out: Path
    name: str
    flags: Flags
    languages: tuple[str, str]
    seed: int
    updates: int
    task: str = ""
    save_every: int = 0
    averaged: int = 1
    train_flags: Sequence[str] = ()
    text_flags: Sequence[str] = SENTENCEPIECE
    # a translation that never ends would take as long as hundreds that do
    length_limits: Sequence[str] = ("--max-len-a", "2", "--max-len-b", "10")

    @property
    def data(self) -> Path:
        """Return the folder that ``hyptrans prepare`` writes, with ``data-bin`` and ``raw``."""
        return self.out / self.task / "data"

    @property
    def folder(self) -> Path:
        """Return the folder of the training's checkpoints."""
        return self.out / self.task / self.name

    @property
    def references(self) -> Path:
        """Return the file with the test set's raw target side."""
        return self.data / "raw" / f"test.{self.languages[1]}"

    @property
    def checkpoint(self) -> Path:
        """Return the checkpoint to translate with."""
        return self.folder / ("average.pt" if self.averaged > 1 else "checkpoint_last.pt")

    @property
    def user_dir(self) -> str:
        """Return fairseq's plug-in with the architecture: the package, or study's candidates."""
        arch = self.flags["--arch"] or ""
        own = any(arch.startswith(path.stem) for path in CANDIDATES.glob("*.py"))
        return str(CANDIDATES) if own else "hyptrans"

    @property
    def _shared(self) -> list[str]:
        return [str(self.data / "data-bin"), "--user-dir", self.user_dir]

    def log(self, command: str) -> Path:
        """Return the log of a command that concerns this training."""
        return self.out / "logs" / f"{command}_{self.name}.log"

    def output(self, search: Search) -> Path:
        """Return the file with the translations of a test set."""
        beam, subset = search
        stem = self.name + ("" if subset == "test" else f"_{subset}")
        return self.folder.with_name(f"{stem}_beam{beam}") / f"generate-{subset}.txt"

    def train(self) -> list[str]:
        """Return the command of the training."""
        command = ["fairseq-train", *self._shared, *words(self.flags, self.updates)]
        command += ["--seed", str(self.seed), "--max-update", str(self.updates)]
        command += ["--save-dir", str(self.folder), "--no-epoch-checkpoints"]
        command += ["--log-format", "simple", "--log-interval", "50"]
        command += ["--num-workers", "0"]  # the data fit into memory: no need for a second process
        every = self.save_every
        if self.averaged > 1:
            every = min(every or self.updates, max(1, self.updates // _SAVED))
        if every:
            command += ["--save-interval-updates", str(every)]
            command += ["--keep-interval-updates", str(self.averaged)]
        return [*command, *self.train_flags]

    def average(self) -> list[str]:
        """Return the command that averages the last checkpoints."""
        command = ["python", "-m", "hyptrans", "average", str(self.folder)]
        return [*command, "--last", str(self.averaged), "--out", str(self.checkpoint)]

    def validate(self) -> list[str]:
        """Return the command that measures the perplexity of the validation set."""
        command = ["fairseq-validate", *self._shared, "--task", "translation"]
        command += ["--path", str(self.checkpoint), "--valid-subset", "valid"]
        return [*command, "--max-tokens", "8000", "--log-format", "simple"]

    def generate(self, search: Search) -> list[str]:
        """Return the command that translates a test set."""
        beam, subset = search
        command = ["fairseq-generate", *self._shared, "--path", str(self.checkpoint)]
        command += ["--gen-subset", subset, "--beam", str(beam), "--max-tokens", "8000"]
        command += [*self.length_limits, *self.text_flags, "--scoring", "sacrebleu"]
        return [*command, "--results-path", str(self.output(search).parent)]


def sides(languages: tuple[str, str]) -> list[str]:
    """Return the flags that name the source and the target language."""
    return ["--source-lang", languages[0], "--target-lang", languages[1]]


def prepared(
    run: Run,
    files: Mapping[str, tuple[Path, Path]],
    text: Sequence[str],
    name: str = "prepare",
    inputs: Sequence[Path] | None = None,
) -> Step:
    """Return the step that binarizes the ``files`` of each set: source and target.

    ``text`` are options of ``hyptrans prepare text``. The data depend on the contents of
    ``inputs``, by default all ``files``.
    """
    command = ["hyptrans", "prepare", "text"]
    for split, pair in files.items():
        # fairseq numbers several test sets
        command += [f"--{split.rstrip('0123456789')}", *map(str, pair)]
    command += [*sides(run.languages), *text, "--out", str(run.data)]
    inputs = [path for pair in files.values() for path in pair] if inputs is None else inputs
    return step(command, name, run.out, run.data, inputs=inputs, resumes=True)


def step(
    command: Sequence[str],
    name: str,
    out: Path,
    output: Path,
    *,
    inputs: Sequence[Path] = (),
    resumes: bool = False,
) -> Step:
    """Wrap a command in a step whose log is ``out/logs/NAME.log``.

    The step runs again if the contents of its ``inputs`` change, and first removes its ``output``
    unless the command ``resumes`` from it.
    """

    def run() -> None:
        if not resumes:
            remove(output)
        execute(command, out / "logs" / f"{name}.log")

    settings = {"command": portable(command, out), "inputs": [sha256(path) for path in inputs]}
    return Step(name, [output], run, settings)


def require_same(run: Run, data: Step) -> dict[str, Any]:
    """Check that a training's folder is new or belongs to the same command on the same data.

    Returns:
        The note that records the command and the data.

    Raises:
        UserError: the folder holds another training.
    """
    path = run.folder / _NOTE
    note = {"command": portable(run.train(), run.out), "data": data.settings}
    begun = any(run.folder.glob("checkpoint*.pt")) or path.exists()
    if begun and not (path.exists() and results.read_json(path) == note):
        raise UserError(
            f"{run.folder} holds a training by another command or of other data: move it away, or "
            "choose another --out"
        )
    return note


def train(run: Run, data: Step) -> tuple[dict[str, Any], bool]:
    """Train, or resume a training from its last checkpoint; see :func:`require_same`.

    Returns:
        The training's part of its line, and False if the training diverged.

    Raises:
        UserError: the training failed, or its folder holds another training.
    """
    note, finished, log = require_same(run, data), True, run.log("train")
    write_json(run.folder / _NOTE, note)
    try:
        execute(run.train(), log)
    except UserError:
        if not (log.exists() and scoring.diverged(log)):
            raise
        finished = False
        say(f"{run.name}: diverged")
    return {"command": note["command"], **scoring.course(log)}, finished


def translate(run: Run, searches: Sequence[Search], *, validated: bool = False) -> dict[str, Any]:
    """Translate with a trained model, and measure validation perplexity if ``validated``.

    Returns:
        The model's part of its line.
    """
    commands = {run.log("average"): run.average()} if run.averaged > 1 else {}
    commands |= {run.log("validate"): run.validate()} if validated else {}
    for search in searches:
        log = run.log("translate").with_name(f"translate_{run.output(search).parent.name}.log")
        commands[log] = run.generate(search)
    for log, command in commands.items():
        log.unlink(missing_ok=True)
        execute(command, log)
    found: dict[str, Any] = {}
    if validated:
        # JSON has neither infinity nor NaN
        found["valid_perplexity"] = finite(scoring.perplexity(run.log("validate")))
    return {**found, "parameters": results.count_parameters(run.checkpoint, run.user_dir)}


def score_columns(
    run: Run, columns: Sequence[scoring.Column], *, lowercase: bool = False
) -> dict[str, Any]:
    """Validate, translate and score; return the scores with their signatures."""
    searches = {column.beam: (column.beam, "test") for column in columns}
    line = translate(run, [*searches.values()], validated=True)
    for column in columns:
        output = run.output(searches[column.beam])
        found = scoring.score(column.metric, output, run.references, lowercase=lowercase)
        line |= {column.key: found.value, f"{column.key}_signature": found.signature}
    return line


def probe(
    name: str,
    out: Path,
    encoders: Mapping[str, Path],
    trees: Mapping[str, Path],
    how: Sequence[str],
    flag: str = "--checkpoint",
) -> dict[str, Any]:
    """Probe trained encoders, given to ``flag``, for trees; return the probes' ``results.json``.

    The probes are in ``out/NAME``; ``trees`` are CoNLL-U files of train, dev and test, and ``how``
    are further options of ``hyptrans probe run``.
    """
    command = ["hyptrans", "probe", "run", "--names", *encoders]
    command += [word for path in encoders.values() for word in (flag, str(path))]
    command += [word for part, path in trees.items() for word in (f"--{part}", str(path))]
    command += [*how, "--out", str(out / name)]
    inputs = [*encoders.values(), *trees.values()]
    steps.run([step(command, name, out, out / name, inputs=inputs)], out)
    return results.read_json(out / name / "results.json")
