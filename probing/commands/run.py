"""Run the whole pipeline: probe and compare several encoders, and write a report."""

import argparse
import shutil
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from hyptrans.support.files import sha256, write_json, write_whole
from hyptrans.support.steps import alone
from hyptrans.support.tables import escaped
from probing.commands import pipeline
from probing.commands.options import settings_of, typed_command
from probing.commands.pipeline import Run, Trees
from probing.commands.report import report
from probing.commands.sources import Source, sources_of, subjects_of
from probing.geometry.layers import verdict
from probing.probes.corpus import check_learnable
from probing.probes.file import load_probes
from probing.probes.metrics import check_tags
from probing.report import Report, write_report
from probing.report.results import beside, markdown, signature, versions
from probing.settings import SETS
from probing.states.file import States
from probing.text.trees import read_conllu


def main(args: argparse.Namespace) -> None:
    """Run ``hyptrans probe run``.

    Raises:
        UserError: an option or what it names cannot be used.
    """
    # the last seed must be in range, too
    replace(settings_of(args), seed=args.seed + args.seeds - 1)
    sources = sources_of(args)
    run = _run_of(args, sources)
    # of two simultaneous runs, one would score the other's probes
    with alone(args.out):
        if args.overwrite:
            # delete everything first, so that a run that resumes this one reuses nothing older
            for subject in run.subjects:
                shutil.rmtree(subject.folder, ignore_errors=True)
        _work(run, args)


def _work(run: Run, args: argparse.Namespace) -> None:
    """Run all steps, and write results and report."""
    kinds = (False, True) if args.control else (False,)
    pipeline.make(
        run, [fit for kind in kinds for subject in run.subjects for fit in run.fits(subject, kind)]
    )
    scored = pipeline.of_baselines(run.scored_trees(), run.punct)
    scored += [pipeline.over_each_seed(run, subject) for subject in run.subjects]
    command = typed_command()
    page = report(run, scored, pipeline.selectivities(run) if args.control else [], command)
    told = [table.markdown() for table in beside(page)]
    told += [f"{escaped(name)}: {verdict(layers)}" for name, layers in page.spaces.items()]
    text = markdown(page.models, page.signature, [*page.notes, *told])
    write_json(args.out / "results.json", _results(run, page, command))
    write_whole(args.out / "results.md", text)
    write_report(args.out / "report.html", page)
    print(f"{text}\n{args.out / 'results.json'}, results.md and report.html are written")


def _run_of(args: argparse.Namespace, sources: Sequence[Source]) -> Run:
    """Return the run that the options describe.

    Raises:
        UserError: a value is out of range, or the trees cannot be read, lack tags or offer nothing
            to learn.
    """
    trees = {}
    for part in SETS:
        path = getattr(args, part)
        trees[part] = Trees(path, read_conllu(path), sha256(path))
    for part in ("train", "dev"):
        check_learnable(map(len, trees[part].sentences), trees[part].path)
    for part in (*(["train"] if args.control else []), "dev", "test"):
        check_tags(trees[part].sentences, args.punct)
    return Run(
        out=args.out,
        subjects=subjects_of(sources, args.names, args.out, random=not args.no_random),
        trees=trees,
        settings=settings_of(args),
        seeds=args.seeds,
        punct=args.punct,
        batch_tokens=args.batch_tokens,
        device=args.device,
    )


def _results(run: Run, page: Report, command: str) -> dict[str, Any]:
    """Return the contents of ``results.json``; ``probe`` has the figures of the table."""
    training, left_out = {}, {}
    for subject in run.subjects:
        courses = {}
        for fit in run.fits(subject):
            found = load_probes(fit.probes).courses
            courses[str(fit.settings.seed)] = {
                task: [asdict(course) for course in found[task]] for task in found
            }
        training[subject.name] = courses
        left_out[subject.name] = {
            part: [asdict(left) for left in States(subject.states(part)).contents.left_out]
            for part in SETS
        }
    return {
        "signature": signature(run.settings, run.punct, run.seeds),
        "probe": {model.name: model.test for model in page.models},
        "models": [asdict(model) for model in page.models],
        "versions": versions(),
        "command": command,
        "settings": asdict(run.settings),
        "seeds": run.seeds,
        "trees": {n: {"file": str(t.path), "sha256": t.sha256} for n, t in run.trees.items()},
        "notes": page.notes,
        "comparisons": {n: [asdict(c) for c in rows] for n, rows in page.comparisons.items()},
        "arcs": page.arcs and asdict(page.arcs),
        "selectivities": [asdict(one) for one in page.selectivities],
        "spaces": {
            name: {"layers": [asdict(layer) for layer in layers], "verdict": verdict(layers)}
            for name, layers in page.spaces.items()
        },
        "training": training,
        "left_out": left_out,
    }
