"""What the recipes that train do alike before their first step and after their last."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hyptrans.support.files import write_json
from recipes.common import options, results
from recipes.common.runner import Runner
from recipes.common.settings import Model, read_models
from recipes.common.translation import Run


def start(
    recipe: Path, args: argparse.Namespace, *, source: str, target: str, **of_run: Any
) -> tuple[list[Model], Run, Runner]:
    """The models, what their steps share, and who runs these, as the options say.

    Args:
        recipe: its folder.
        args: the options.
        source: language translated from.
        target: language translated to.
        of_run: other fields of :class:`Run`.

    Raises:
        UserError: a model has no configuration, or ``--average`` is below 1.
    """
    options.check_positive(args, "average")
    models = read_models(recipe, args.archs.split(","))
    run = Run(
        out=args.out,
        source=source,
        target=target,
        seed=args.seed,
        updates=args.updates,
        threads=options.threads_of(args.jobs, len(models)),
        cpu=args.cpu,
        averaged=args.average,
        **of_run,
    )
    runner = Runner(args.out, overwrite=args.overwrite)
    if not args.out.exists():
        runner.say(f"{args.out.absolute()} is new: everything is run (--out names another folder)")
    return models, run, runner


def train_seconds(runner: Runner, models: Sequence[Model]) -> dict[str, float | None]:
    """Seconds that each model's training took, None where it was resumed."""
    return {model.name: runner.seconds[f"train_{model.name}"] for model in models}


def conditions(run: Run, runner: Runner) -> dict[str, Any]:
    """What the numbers of a run depend on, with the commands that made them."""
    trained = [notes for name, notes in runner.notes.items() if name.startswith("train_")]
    return {
        "seed": run.seed,
        "updates": run.updates,
        "averaged": run.averaged,
        "threads": _one_or_all([notes.get("threads", run.threads) for notes in trained])
        or run.threads,
        **_surroundings(trained),
        "commands": runner.commands,
    }


def _surroundings(trained: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Of the trainings when they were executed, which may be long ago, or else of now."""
    now = results.surroundings()
    then = [notes.get("surroundings", now) for notes in trained] or [now]
    packages = dict.fromkeys(name for found in then for name in found["versions"])
    return {
        "versions": {
            name: _one_or_all([found["versions"].get(name) for found in then]) for name in packages
        },
        **{name: _one_or_all([found[name] for found in then]) for name in ("cpu_cores", "commit")},
    }


def _one_or_all(values: Sequence[Any]) -> Any:
    """The value, or, where there are several, their texts in order; None where there is none."""
    different = list(dict.fromkeys(values))
    if len(different) < 2:
        return different[0] if different else None
    return ", ".join(map(str, different))


def averaged(found: Mapping[str, Any]) -> str:
    """Which checkpoints were averaged; empty where none were."""
    count = found.get("averaged", 1)
    return f"the average of the last {count} checkpoints of each" if count > 1 else ""


def finish(
    recipe: Path,
    args: argparse.Namespace,
    runner: Runner,
    found: Mapping[str, Any],
    table: str,
    name: str = results.RESULTS,
) -> None:
    """Write ``results.json``, print the table, and publish both by name if that was asked for."""
    path = args.out / "results.json"
    write_json(path, found)
    print(f"\n{table}\n")
    runner.say(f"results: {path}")
    if args.write_readme:
        results.publish(recipe, found, table, name)
        runner.say(f"table: {recipe / 'README.md'}")
