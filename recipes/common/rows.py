"""One row a model: train it, measure its validation perplexity, translate, score."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hyptrans.support import tables
from hyptrans_startup import saving
from recipes.common import experiment, results, scoring, translation
from recipes.common.commands import Runner, Step
from recipes.common.models import Model
from recipes.common.scoring import Score
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
    """

    key: str
    title: str
    beam: int
    subset: str = "test"
    measure: Callable[[Path, Path], Score] = scoring.score

    @property
    def translation(self) -> tuple[int, str]:
        """Columns with the same one score the same file."""
        return self.beam, self.subset


@dataclass(frozen=True)
class _Chain:
    """The steps behind the row of a model."""

    model: Model
    trained: Step
    validated: Step
    translated: Mapping[tuple[int, str], Step]

    @property
    def steps(self) -> list[Step]:
        return [self.trained, self.validated, *self.translated.values()]


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
        scores = {column.key: _score(run, chain, column) for column in columns}
        # the same for every model
        signatures = {key: score.signature for key, score in scores.items()}
        rows[chain.model.name] = {
            "parameters": results.count_parameters(run.checkpoint(chain.model.name)),
            "updates": run.updates_of(chain.model),
            "valid_perplexity": translation.perplexity(runner, chain.validated),
            **{key: score.value for key, score in scores.items()},
            "train_seconds": runner.seconds[chain.trained.name],
        }
    return {"models": rows, "signatures": signatures, **experiment.conditions(run, runner)}


def _chain(run: Run, model: Model, prepared: Step, columns: Sequence[Column]) -> _Chain:
    trained = translation.train(run, model, prepared)
    wanted = dict.fromkeys(column.translation for column in columns)
    return _Chain(
        model,
        trained,
        translation.validate(run, model.name, trained),
        {
            (beam, subset): translation.generate(run, model.name, trained, beam=beam, subset=subset)
            for beam, subset in wanted
        },
    )


def _score(run: Run, chain: _Chain, column: Column) -> Score:
    folder = chain.translated[column.translation].outputs[0]
    output = folder / f"generate-{column.subset}.txt"
    return column.measure(output, run.references_of(column.subset))


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
            f"{row['valid_perplexity']:.2f}",
            *(f"{row[column.key]:.1f}" for column in columns),
        ]
        for name, row in found["models"].items()
    ]
    lines = tables.markdown([*header, *(column.title for column in columns)], rows)
    updates = f"{found['updates']:,} updates; " if one_length else ""
    signatures = dict.fromkeys(f"`{found['signatures'][column.key]}`" for column in columns)
    versions = found["versions"]
    return (
        f"{lines}\n\nsacreBLEU {', '.join(signatures)} on {test}; {updates}"
        f"one run of each, seed {found['seed']}; torch {versions['torch']}, "
        f"fairseq {versions['fairseq']}"
    )
