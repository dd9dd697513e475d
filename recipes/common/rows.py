"""One row a model: train it, measure its validation perplexity, translate, score."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hyptrans.support import tables
from hyptrans_startup.checkpoints import saving
from recipes.common import comparison, experiment, results, scoring, translation
from recipes.common.runner import Runner
from recipes.common.scoring import Score
from recipes.common.settings import Model
from recipes.common.steps import Step
from recipes.common.translation import Run


@dataclass(frozen=True)
class Column:
    """A score of every model.

    Attributes:
        key: what ``results.json`` calls it.
        title: what the table calls it.
        beam: hypotheses that beam search keeps.
        subset: the test set.
        measure: scores a file that ``fairseq-generate`` wrote, against raw references.
        tested: the metric, ``bleu`` or ``chrf``, by which differences from the twin are tested.
        lowercase: they are without case.
    """

    key: str
    title: str
    beam: int
    subset: str = "test"
    measure: Callable[[Path, Path], Score] = scoring.score
    tested: str | None = "bleu"
    lowercase: bool = False

    @property
    def translation(self) -> tuple[int, str]:
        """Columns with the same one score the same file."""
        return self.beam, self.subset


@dataclass(frozen=True)
class _Chain:
    """The steps behind the row of a model."""

    model: Model
    trained: Sequence[Step]
    validated: Step
    translated: Mapping[tuple[int, str], Step]

    @property
    def steps(self) -> list[Step]:
        return [*self.trained, self.validated, *self.translated.values()]

    def output(self, column: Column) -> Path:
        """The file that a column is a score of."""
        return self.translated[column.translation].outputs[0] / f"generate-{column.subset}.txt"


def measure(
    models: Sequence[Model],
    run: Run,
    runner: Runner,
    prepared: Step,
    columns: Sequence[Column],
    *,
    jobs: int,
) -> dict[str, Any]:
    """Train and score models, ``jobs`` at a time: what ``results.json`` holds.

    Raises:
        UserError: a command failed.
    """
    chains = [_chain(run, model, prepared, columns) for model in models]
    for model in models if run.save_every else ():
        # fairseq's own copy may be cut where an earlier run was killed
        saving.mend(run.out / model.name / saving.LAST)
    runner.chains([chain.steps for chain in chains], jobs=jobs)
    rows, signatures = {}, {}
    for chain in chains:
        scores = {
            column.key: column.measure(chain.output(column), run.references_of(column.subset))
            for column in columns
        }
        # the same for every model
        signatures = {key: score.signature for key, score in scores.items()}
        rows[chain.model.name] = {
            "parameters": results.count_parameters(run.checkpoint(chain.model.name)),
            "updates": run.updates_of(chain.model),
            "valid_perplexity": translation.perplexity(runner, chain.validated),
            **{key: score.value for key, score in scores.items()},
            "train_seconds": runner.seconds[chain.trained[0].name],
        }
    found = {"models": rows, "signatures": signatures}
    return {**found, **_compared(run, chains, columns), **experiment.conditions(run, runner)}


def _compared(run: Run, chains: Sequence[_Chain], columns: Sequence[Column]) -> dict[str, Any]:
    """By model and column, how likely its difference from the twin is by chance."""
    baseline = comparison.baseline_of([chain.model for chain in chains])
    if baseline is None:
        return {}
    p: dict[str, dict[str, float]] = {}
    signatures: dict[str, str] = {}
    tested = [column for column in columns if column.tested]
    for translation_ in dict.fromkeys(column.translation for column in tested):
        same = [column for column in tested if column.translation == translation_]
        outputs = {chain.model.name: chain.output(same[0]) for chain in chains}
        references = run.references_of(same[0].subset)
        found, signatures = comparison.against(
            baseline, outputs, references, lowercase=same[0].lowercase
        )
        for name, values in found.items():
            p.setdefault(name, {}).update({c.key: values[str(c.tested)] for c in same})
    return {"baseline": baseline, "p": p, "comparison_signatures": signatures}


def _chain(run: Run, model: Model, prepared: Step, columns: Sequence[Column]) -> _Chain:
    trained = translation.trained(run, model, prepared)
    wanted = dict.fromkeys(column.translation for column in columns)
    return _Chain(
        model,
        trained,
        translation.validate(run, model.name, trained[-1]),
        {
            (beam, subset): translation.generate(
                run, model.name, trained[-1], beam=beam, subset=subset
            )
            for beam, subset in wanted
        },
    )


def _perplexity(value: float | None) -> str:
    # no JSON number is infinite or none
    return f"{value:.2f}" if value is not None and math.isfinite(value) else "diverged"


def table(found: Mapping[str, Any], columns: Sequence[Column], test: str) -> str:
    """The results as Markdown; ``test``: what the test set is called."""
    # older runs did not measure all of them
    columns = [column for column in columns if column.key in found["signatures"]]
    one_length = found["updates"] is not None
    header = ["model", "parameters", *([] if one_length else ["updates"]), "valid perplexity"]
    rows = [
        [
            name,
            f"{row['parameters']:,}",
            *([] if one_length else [f"{row['updates']:,}"]),
            _perplexity(row["valid_perplexity"]),
            *(
                comparison.cell(row[column.key], found.get("p", {}).get(name, {}).get(column.key))
                for column in columns
            ),
        ]
        for name, row in found["models"].items()
    ]
    lines = tables.markdown([*header, *(column.title for column in columns)], rows)
    updates = f"{found['updates']:,} updates; " if one_length else ""
    signatures = dict.fromkeys(f"`{found['signatures'][column.key]}`" for column in columns)
    versions = found["versions"]
    about = [
        f"sacreBLEU {', '.join(signatures)} on {test}",
        comparison.caption(found),
        f"{updates}one run of each, seed {found['seed']}",
        experiment.averaged(found),
        f"torch {versions['torch']}, fairseq {versions['fairseq']}",
    ]
    return f"{lines}\n\n{'; '.join(filter(None, about))}"
