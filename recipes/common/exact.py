"""Train on tasks scored by exact match: answer greedily and count the answers that match.

Questions and answers are words separated by spaces, without subwords, so an answer is right if it
equals the reference word for word. Trainings run one after the other; each becomes one line of
results.jsonl once it is scored.
"""

from __future__ import annotations

import argparse
import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hyptrans.evaluation import scores
from hyptrans.support import steps
from recipes.common import results, translation
from recipes.common.commands import say
from recipes.common.results import Record, Results
from recipes.common.settings import Flags, Model, in_name
from recipes.common.translation import Run

SOURCE, TARGET = "question", "answer"
TWINS = ("euclidean_prenorm", "euclidean_postnorm")
"""The baseline Transformers; the second one has the norms of ``hybonet_plus``."""
MODELS = (*TWINS, "sphere", "hybonet", "hybonet_plus", "lorentz_shell")
"""The models that the tables compare, in this order."""
_PARTS = 10
"""Checkpoints per training, and points of its validation perplexity curve."""
# the longest answer of all tasks has 144 words; its question has 61
_LENGTHS = ("--max-len-a", "3", "--max-len-b", "50")

Example = tuple[str, str, str]
"""Question, answer, and kind; exact matches are also counted by kind."""
Sets = Mapping[str, Sequence[Example]]
"""Examples by name of the set: ``train``, ``valid``, then the test sets."""


@dataclass(frozen=True)
class Training:
    """One training, and the test sets that its model answers.

    Attributes:
        setting: name of the ``fairseq-train`` flags that the stage tries.
        flags: these flags and all others except the model's own, the rate and the updates.
        task: one of the recipe's data sets; if there are several, they are the settings.
    """

    stage: str
    model: str
    setting: str
    rate: float
    updates: int
    seed: int
    flags: Flags = field(compare=False)
    answers: tuple[str, ...]
    task: str = "data"

    @property
    def name(self) -> str:
        """Return the name of the training's folder, log and results line."""
        rate = f"lr{in_name(self.rate)}"
        return f"{self.stage}-{self.model}-{self.setting}-{rate}-{self.updates}-seed{self.seed}"


def size_flags(*, width: int, heads: int) -> Flags:
    """Return flags for two layers per side whose inner width is four times ``width``."""
    sizes = {"layers": 2, "embed-dim": width, "attention-heads": heads, "ffn-embed-dim": 4 * width}
    return {
        f"--{side}-{name}": str(value)
        for side in ("encoder", "decoder")
        for name, value in sizes.items()
    }


def right(line: Mapping[str, Any], subset: str, kind: str = "all") -> float:
    """Return a line's percent of right answers; 0 for a training that diverged."""
    return float(line["exact"][subset][kind]) if line["exact"] else 0.0


def score_in(results: Results, subset: str) -> Callable[[Training], float | None]:
    """Return a function from a training to its percent of right answers, None if not done."""
    scored = (x for x in results if "exact" in x and subset in (x["exact"] or {subset}))
    found = {line["name"]: right(line, subset) for line in scored}
    return lambda training: found.get(training.name)


def run(
    recipe: Path,
    args: argparse.Namespace,
    trainings: Callable[[Results], Sequence[Training]],
    sets: Callable[[str], Sets],
    table: Callable[[Results], str],
    others: Callable[[], Results] = tuple,
) -> None:
    """Run all unfinished trainings and write the tables.

    Args:
        recipe: the recipe's folder; its README receives the tables.
        args: options from :func:`recipes.common.options.recipe_parser`.
        trainings: returns the trainings known so far; earlier results determine later ones.
        sets: returns the examples of a task.
        table: writes all results as Markdown.
        others: returns results of other authors, each with a name.

    Raises:
        UserError: ``--only`` names an unknown training, or a command failed.
    """

    def publish(found: Results) -> None:
        results.put_into(recipe / "README.md", table(found))

    record = Record(recipe, args, trainings, publish)
    if args.list:
        record.show()
        return
    for line in others():
        record.add(line, measured=False)
    record.complete(lambda training: _train_and_score(training, sets(training.task), args))
    print(f"{table(record.lines)}\n\n{record.path}: every training is done")


def run_of(training: Training, out: Path, *, threads: int) -> tuple[Run, Model]:
    """Return the run that a training's commands share, and the model with its flags."""
    run = Run(
        out=out / training.task,
        source=SOURCE,
        target=TARGET,
        seed=training.seed,
        updates=training.updates,
        threads=threads,
        user_dir=translation.plug_in(training.model),
        save_every=max(1, training.updates // _PARTS),
        train_flags=("--validate-interval", "100000"),
        text_flags=(),
        length_limits=_LENGTHS,
    )
    flags = {"--arch": f"{training.model}_tiny", **training.flags, "--lr": f"{training.rate:g}"}
    return run, Model(training.name, flags)


def _train_and_score(training: Training, sets: Sets, args: argparse.Namespace) -> dict[str, Any]:
    """Train, score and return the line; a training that diverged gets a line without scores."""
    run, model = run_of(training, args.out, threads=args.threads)
    prepared = translation.step(
        prepare(run, sets), f"prepare_{training.task}", args.out, [run.data], resumes=True
    )
    steps.run([prepared], run.out)
    found, finished = translation.train(run, model, args.out, prepared)
    of_training = {key: value for key, value in asdict(training).items() if key != "flags"}
    line = {**of_training, "name": model.name, **found}
    if not finished:
        return {**line, "exact": None}
    subsets = subsets_of(sets)
    searches = {key: (1, subsets[key]) for key in training.answers}
    line |= translation.translate(run, model.name, args.out, searches.values())
    exact = {key: matches(run.output(model.name, one), sets[key]) for key, one in searches.items()}
    for key, one in exact.items():
        say(f"{model.name}: {one['all']} % of {key}")
    return {**line, "exact": exact}


def subsets_of(sets: Sets) -> dict[str, str]:
    """Return fairseq's name of each set; fairseq calls several test sets test, test1 and so on."""
    tests = [name for name in sets if name not in ("train", "valid")]
    return {name: name if name not in tests else f"test{tests.index(name) or ''}" for name in sets}


def prepare(run: Run, sets: Sets) -> list[str]:
    """Write the examples as text and return the command that binarizes them.

    Spaces separate words. Both sides share one dictionary, because most words of a question, names
    above all, reappear unchanged in its answer.
    """
    command = ["hyptrans", "prepare", "text", "--bpe", "none"]
    subsets = subsets_of(sets)
    for name, examples in sets.items():
        pair = [run.out / "text" / f"{name}.{side}" for side in (SOURCE, TARGET)]
        for side, path in enumerate(pair):
            results.write_changed(path, "".join(f"{example[side]}\n" for example in examples))
        command += [f"--{subsets[name].rstrip('0123456789')}", *map(str, pair)]
    command += ["--source-lang", SOURCE, "--target-lang", TARGET, "--joined-dictionary"]
    return [*command, "--out", str(run.data)]


def matches(output: Path, examples: Sequence[Example]) -> dict[str, float]:
    """Return the percent of right answers in ``fairseq-generate``'s output, of all and by kind.

    Raises:
        UserError: the number of answers is not that of the examples.
    """
    answers = scores.detokenized(output)
    references = [answer for _, answer, _ in examples]
    scores.check_lengths(answers, output, references, Path("the examples"))
    found: dict[str, list[bool]] = defaultdict(list)
    for answer, (_, reference, kind) in zip(answers, examples, strict=True):
        for group in dict.fromkeys(("all", kind)):
            found[group].append(answer.split() == reference.split())
    return {kind: round(100 * statistics.fmean(one), 2) for kind, one in found.items()}
