"""Train on tasks scored by exact match: answer greedily and count the answers that match.

Questions and answers are words separated by spaces, without subwords, so an answer is right if it
equals the reference word for word. Trainings run one after the other; each becomes one line of
results.jsonl once it is scored.
"""

import argparse
import statistics
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any

import pandas as pd

from hyptrans.evaluation import scores
from hyptrans.support.steps import Step
from recipes.common import results, seeds, translation
from recipes.common.experiment import Experiment
from recipes.common.results import Results, rate
from recipes.common.settings import Flags, in_name
from recipes.common.translation import Run

SOURCE, TARGET = "question", "answer"
VALID, TEST = "valid", "test"
"""The set that chooses rates, and the one that tables report."""
TWINS = ("euclidean_prenorm", "euclidean_postnorm")
"""The baseline Transformers; the second one has the norms of ``hybonet_plus``."""
MODELS = (*TWINS, "sphere", "hybonet", "hybonet_plus", "lorentz_shell")
"""The models that the tables compare, in this order."""
_PARTS = 10
"""Checkpoints per training, and points of its validation perplexity curve."""
# the longest answer of all tasks has 200 words; its question has 52
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


def by_model(lines: Results, **values: Callable[[Mapping[str, Any]], float]) -> pd.DataFrame:
    """Return a row for each model in the order of the tables; cells list the values by seed."""
    known = [x for x in sorted(lines, key=lambda x: x.get("seed", 0)) if x.get("model") in MODELS]
    rows = [{"model": x["model"], **{key: of(x) for key, of in values.items()}} for x in known]
    frame = pd.DataFrame(rows, columns=["model", *values]).groupby("model").agg(list)
    return frame.reindex([model for model in MODELS if model in frame.index])


def compared(
    title: str,
    groups: Mapping[str, tuple[Results, str, Collection[str]]],
    values: Mapping[str, Callable[[Mapping[str, Any]], float]],
    by: str,
) -> tuple[pd.DataFrame, str]:
    """Compare the models of each group with its twin.

    Args:
        title: the column of the groups' names.
        groups: the lines of a group's final trainings, its twin, and the models whose rate is not
            tuned.
        values: scores of a line, by column.
        by: the column whose scores are tested.

    Returns:
        A row for each model of each group, whose cells in the columns of ``values`` list the scores
        by seed, and a caption's words on the smallest possible p.
    """
    frames: list[pd.DataFrame] = []
    floors: list[float] = []
    for name, (finals, twin, untuned) in groups.items():
        frame = by_model(finals, rate=itemgetter("rate"), **values)
        p, least = seeds.against(twin, frame[by])
        frame["rate"] = [rate(used[0], model in untuned) for model, used in frame["rate"].items()]
        frame.insert(1, "seeds", frame[by].map(len))
        frames.append(frame.assign(p=pd.Series(p, dtype=float)).reset_index())
        frames[-1].insert(0, title, name)
        floors += least
    return pd.concat(frames), seeds.at_least(floors)


def experiment(
    recipe: Path,
    args: argparse.Namespace,
    plan: Callable[[Results], Sequence[Training]],
    sets: Callable[[str], Sets],
    table: Callable[[Results], str],
) -> Experiment[Training]:
    """Return the experiment of a recipe whose answers are right or wrong.

    ``sets`` returns the examples of a task; for the rest see :class:`Experiment`.
    """
    sets = cache(sets)

    def begin(training: Training) -> tuple[Run, Step]:
        run = run_of(training, args.out)
        return run, prepare(run, sets(training.task))

    def score(training: Training, run: Run) -> dict[str, Any]:
        examples = sets(training.task)
        subsets = subsets_of(examples)
        searches = {key: (1, subsets[key]) for key in training.answers}
        line = translation.translate(run, [*searches.values()])
        outputs = {key: run.output(one) for key, one in searches.items()}
        return {**line, "exact": {key: matches(outputs[key], examples[key]) for key in outputs}}

    return Experiment(recipe, args, plan, begin, score, table, {"exact": None})


def run_of(training: Training, out: Path) -> Run:
    """Return a training's commands."""
    flags = {"--arch": f"{training.model}_tiny", **training.flags, "--lr": f"{training.rate:g}"}
    return Run(
        out,
        training.name,
        flags,
        (SOURCE, TARGET),
        training.seed,
        training.updates,
        task=training.task,
        save_every=max(1, training.updates // _PARTS),
        train_flags=("--validate-interval", "100000"),
        text_flags=(),
        length_limits=_LENGTHS,
    )


def subsets_of(sets: Sets) -> dict[str, str]:
    """Return fairseq's name of each set; fairseq calls several test sets test, test1 and so on."""
    tests = [name for name in sets if name not in ("train", VALID)]
    return {name: name if name not in tests else f"test{tests.index(name) or ''}" for name in sets}


def prepare(run: Run, sets: Sets) -> Step:
    """Write the examples as text and return the step that binarizes them.

    Spaces separate words. Both sides share one dictionary, because most words of a question, names
    above all, reappear unchanged in its answer.
    """
    files, subsets = {}, subsets_of(sets)
    for name, examples in sets.items():
        text = run.data.with_name("text")
        pair = files[subsets[name]] = text / f"{name}.{SOURCE}", text / f"{name}.{TARGET}"
        for side, path in enumerate(pair):
            results.write_changed(path, "".join(f"{example[side]}\n" for example in examples))
    options = ("--bpe", "none", "--joined-dictionary")
    return translation.prepared(run, files, options, f"prepare_{run.task}", inputs=())


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
