"""The whole of it: extract, train, evaluate and compare several encoders, and write a report."""

import argparse
import os
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from hyptrans.support.errors import UserError
from hyptrans.support.files import sha256, take_lock, write_json, write_whole
from hyptrans.support.tables import escaped
from probing.commands.evaluate import as_json
from probing.commands.options import filled, typed_command
from probing.commands.pipeline import Fit, Run, Trees, rank_points, selectivities, stages
from probing.commands.report import report, texts_of
from probing.commands.sources import (
    Source,
    sources_of,
    subjects_of,
)
from probing.probes.corpus import check_learnable
from probing.probes.file import load_probes
from probing.probes.metrics import check_tags
from probing.report import Report, write_report
from probing.report.results import beside, markdown
from probing.settings import CONTROL_RANKS, SETS, Settings, check_ranks
from probing.states.file import States
from probing.text.trees import read_conllu


def main(args: argparse.Namespace) -> None:
    """Run ``python -m probing run``.

    Raises:
        UserError: an option or what it names cannot be used.
    """
    if args.examples < 0:
        raise UserError(f"--examples must be 0 or more, not {args.examples}")
    # the last one, too, is to be in range
    replace(filled(Settings, args), seed=args.seed + args.seeds - 1)
    check_ranks(args.ranks)
    sources = sources_of(args)
    texts = texts_of(args.seen, len(sources))
    run = _run_of(args, sources)
    # of two runs at once, one would score the probes of the other
    args.out.mkdir(parents=True, exist_ok=True)
    file = args.out / ".lock"
    lock = take_lock(file, args.out)
    try:
        _find_and_tell(run, args, texts)
    finally:
        file.unlink()
        os.close(lock)
        if not any(args.out.iterdir()):
            args.out.rmdir()


def _find_and_tell(run: Run, args: argparse.Namespace, texts: Sequence[Path | None]) -> None:
    """Do everything, and write results and report."""
    command = typed_command()
    scored = stages(run)
    ranks = rank_points(run, args.ranks)
    selective = selectivities(run, args.ranks or CONTROL_RANKS) if args.control else []
    page = report(run, scored, ranks, selective, texts, examples=args.examples, command=command)
    also = page.vocabularies, ranks, selective, page.arcs, run.subjects[0].name
    told = [table.markdown() for table in beside(page.comparisons, *also)]
    told += [f"{escaped(name)}: {use.verdict}" for name, use in page.spaces.items()]
    text = markdown(page.models, page.signature, [*page.notes, *told])
    found = as_json(page.models, page.signature) | _described(run, page, command) | _training(run)
    write_json(args.out / "results.json", found)
    write_whole(args.out / "results.md", text)
    write_report(args.out / "report.html", page)
    print(f"{text}\n{args.out / 'results.json'}, results.md and report.html are written")


def _run_of(args: argparse.Namespace, sources: Sequence[Source]) -> Run:
    """What the options ask for.

    Raises:
        UserError: a value is out of range, or the trees cannot be read, lack tags or have nothing
            to learn.
    """
    settings = filled(Settings, args)
    subjects = subjects_of(sources, args.names, args.out, random=not args.no_random)
    trees = {name: _trees(getattr(args, name)) for name in SETS}
    for part in ("train", "dev"):
        check_learnable(map(len, trees[part].sentences), trees[part].path)
    for part in (*(["train"] if args.control else []), "dev", "test"):
        check_tags(trees[part].sentences, args.punct)
    return Run(
        subjects=subjects,
        trees=trees,
        settings=settings,
        seeds=args.seeds,
        punct=args.punct,
        batch_tokens=args.batch_tokens,
        device=args.device,
        overwrite=args.overwrite,
    )


def _trees(path: Path) -> Trees:
    return Trees(path, read_conllu(path), sha256(path))


def _described(run: Run, page: Report, command: str) -> dict[str, Any]:
    """What the scores are of, and what is told beside them."""
    return {
        "command": command,
        "settings": asdict(run.settings),
        "seeds": run.seeds,
        "trees": {n: {"file": str(t.path), "sha256": t.sha256} for n, t in run.trees.items()},
        "notes": page.notes,
        "comparisons": {n: [asdict(c) for c in rows] for n, rows in page.comparisons.items()},
        "vocabularies": {n: asdict(shares) for n, shares in page.vocabularies.items()},
        "ranks": [asdict(point) for point in page.ranks],
        "arcs": page.arcs and asdict(page.arcs),
        "selectivities": [asdict(one) for one in page.selectivities],
        "spaces": {n: asdict(use) for n, use in page.spaces.items()},
        "seconds": run.seconds,
    }


def _training(run: Run) -> dict[str, Any]:
    """How the training of every probe went, and the sentences that have no states."""
    training, left_out = {}, {}
    for subject in run.subjects:
        courses = {}
        for seed in run.each_seed:
            probes = Fit(replace(run.settings, seed=seed)).file(subject, "probes.safetensors")
            found = load_probes(probes).courses
            courses[str(seed)] = {task: [asdict(c) for c in found[task]] for task in found}
        training[subject.name] = courses
        left_out[subject.name] = {
            part: [asdict(left) for left in States.open(subject.states(part)).contents.left_out]
            for part in SETS
        }
    return {"training": training, "left_out": left_out}
