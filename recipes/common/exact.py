"""Tasks whose answers are right or wrong as a whole: train, answer greedily, count exact matches.

A question and its answer are words by spaces; there are no subwords, so an answer is right if it is
the reference word for word. Trainings run one after the other; each is one line of results.jsonl
once it is scored. Whatever stops the command, the same one goes on.
"""

from __future__ import annotations

import argparse
import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from hyptrans.evaluation import scores
from hyptrans.support.files import write_whole
from recipes.common import lines, results, translation
from recipes.common.results import Results
from recipes.common.runner import Runner
from recipes.common.settings import Flags, Model, in_name
from recipes.common.steps import Step
from recipes.common.translation import Run

SOURCE, TARGET = "question", "answer"
TWIN = "euclidean_prenorm"
MODELS = (TWIN, "sphere", "hybonet", "hybonet_plus", "lorentz_shell")
"""The models that are compared."""
_PARTS = 10
"""Checkpoints, and points of the curve of validation perplexity, of a training."""
# the longest answer of all tasks has 144 words, to a question of 61
_LENGTHS = ("--max-len-a", "3", "--max-len-b", "50")

Example = tuple[str, str, str]
"""Question, answer, and the kind that exact matches are counted by."""
Sets = Mapping[str, Sequence[Example]]
"""By name: ``train``, ``valid``, then the test sets."""


@dataclass(frozen=True)
class Training:
    """One training, and the test sets that its model answers.

    Attributes:
        setting: what tables call the flags of ``fairseq-train`` that the stage tries.
        flags: those, and all others but the model's own, its rate and its length.
        task: which of a recipe's data sets; where there are several, they are the settings.
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
        """What its folder, its log and its line of the results are called."""
        rate = f"lr{in_name(self.rate)}"
        return f"{self.stage}-{self.model}-{self.setting}-{rate}-{self.updates}-seed{self.seed}"


def size_flags(*, width: int, heads: int) -> Flags:
    """Flags of one size of encoder and decoder, two layers each; inside blocks it is four times."""
    sizes = {"layers": 2, "embed-dim": width, "attention-heads": heads, "ffn-embed-dim": 4 * width}
    return {
        f"--{side}-{name}": str(value)
        for side in ("encoder", "decoder")
        for name, value in sizes.items()
    }


def scores_of(results: Results, trials: Sequence[Training], subset: str) -> list[float] | None:
    """Percent of right answers, of each trial the mean over seeds; None while one is not done.

    A training that diverged has no right answer.
    """
    found = {line["name"]: line.get("exact") or {subset: {"all": 0.0}} for line in results}
    if not all(trial.name in found for trial in trials):
        return None
    by_seed = defaultdict(list)
    for trial in trials:
        by_seed[replace(trial, seed=0)].append(found[trial.name][subset]["all"])
    return [statistics.fmean(by_seed[replace(trial, seed=0)]) for trial in trials]


def best(results: Results, trials: Sequence[Training], subset: str) -> Training | None:
    """The first of the trials with most right answers; None while one is not done."""
    found = scores_of(results, trials, subset)
    return None if found is None else trials[found.index(max(found))]


def rate_trials(
    results: Results, trial: Callable[[float], Training], rates: Sequence[float], subset: str
) -> list[Training]:
    """A training at each rate, and on by the last two rates' factor while the largest is best."""
    trials = [trial(rate) for rate in rates]
    while best(results, trials, subset) is trials[-1]:
        trials.append(trial(trials[-1].rate * rates[-1] / rates[-2]))
    return trials


def run(
    recipe: Path,
    args: argparse.Namespace,
    trainings: Callable[[Results], Sequence[Training]],
    sets: Callable[[str], Sets],
    table: Callable[[Results], str],
    beside: Callable[[], Results] = tuple,
) -> None:
    """Run what is not done yet.

    Args:
        recipe: its folder, with a README that the tables are put into.
        args: of :func:`recipes.common.lines.make_parser`.
        trainings: those that can be named so far; earlier results decide on later ones.
        sets: the examples of a task.
        table: of all results, as Markdown.
        beside: gives results of others, each with a name.

    Raises:
        UserError: ``--only`` names none of them, or a command failed.
    """

    def publish(found: Results) -> None:
        results.put_into(recipe / "README.md", table(found))

    queue = lines.Queue(recipe, args, trainings, publish)
    if args.list:
        queue.show()
        return
    for line in beside():
        queue.add(line, measured=False)
    queue.run(lambda training: _train_and_score(training, sets(training.task), args))
    print(f"{table(queue.lines)}\n\n{queue.path}: all that is asked for is done")


def _train_and_score(training: Training, sets: Sets, args: argparse.Namespace) -> dict[str, Any]:
    """The line of a training; one that diverged is a result too, without scores."""
    run = Run(
        out=args.out / training.task,
        source=SOURCE,
        target=TARGET,
        seed=training.seed,
        updates=training.updates,
        threads=args.threads,
        cpu=args.cpu,
        prepared=f"prepare_{training.task}",
        user_dir=translation.plug_in(training.model),
        save_every=max(1, training.updates // _PARTS),
        train_flags=("--validate-interval", "100000"),
        text_flags=(),
        length_limits=_LENGTHS,
    )
    runner, name = Runner(args.out), training.name
    flags = {"--arch": f"{training.model}_tiny", **training.flags, "--lr": f"{training.rate:g}"}
    found, finished = lines.train(runner, run, Model(name, flags), prepare(run, sets))
    of_training = {key: value for key, value in asdict(training).items() if key != "flags"}
    line = {**of_training, "name": name, **found}
    if not finished:
        return {**line, "exact": None}
    subsets, exact = subsets_of(sets), {}
    for key in training.answers:
        search = (1, subsets[key])
        runner.run(translation.generate(run, name, search))
        exact[key] = matches(run.output(name, search), sets[key])
        runner.say(f"{name}: {exact[key]['all']} % of {key}")
    parameters = results.count_parameters(run.checkpoint(name), run.user_dir)
    return {**line, "parameters": parameters, "exact": exact}


def subsets_of(sets: Sets) -> dict[str, str]:
    """What fairseq calls each set: several test sets are test, test1 and so on."""
    tests = [name for name in sets if name not in ("train", "valid")]
    return {name: name if name not in tests else f"test{tests.index(name) or ''}" for name in sets}


def prepare(run: Run, sets: Sets) -> Step:
    """Write the examples as text and binarize them: words by spaces, one dictionary for both sides.

    Most words of a question, names above all, stand in its answer as they are.
    """
    command = ["python", translation.script("prepare_text.py"), "--bpe", "none"]
    files = []
    subsets = subsets_of(sets)
    for name, examples in sets.items():
        pair = [run.out / "text" / f"{name}.{side}" for side in (SOURCE, TARGET)]
        for side, path in enumerate(pair):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, "".join(f"{example[side]}\n" for example in examples))
        command += [f"--{subsets[name].rstrip('0123456789')}", *map(str, pair)]
        files += pair
    command += ["--source-lang", SOURCE, "--target-lang", TARGET, "--joined-dictionary"]
    return Step(run.prepared, [*command, "--out", str(run.data)], [run.data], inputs=files)


def matches(output: Path, examples: Sequence[Example]) -> dict[str, float]:
    """Percent of right answers in what ``fairseq-generate`` wrote: of all, and by kind.

    Raises:
        UserError: there is another number of answers.
    """
    answers = scores.detokenized(output)
    references = [answer for _, answer, _ in examples]
    scores.check_lengths(answers, output, references, Path("the examples"))
    right: dict[str, list[bool]] = defaultdict(list)
    for answer, (_, reference, kind) in zip(answers, examples, strict=True):
        for group in dict.fromkeys(("all", kind)):
            right[group].append(answer.split() == reference.split())
    return {kind: round(100 * statistics.fmean(found), 2) for kind, found in right.items()}
