"""Run the whole pipeline: probe and compare several encoders, and write a report."""

import argparse
import shutil
from dataclasses import asdict, is_dataclass
from typing import Any

from hyptrans.support.files import sha256, write_json, write_whole
from hyptrans.support.steps import alone
from hyptrans.support.tables import escaped
from probing.commands import pipeline
from probing.commands.options import typed_command
from probing.commands.pipeline import Run, Trees
from probing.commands.report import report
from probing.commands.sources import subjects_of
from probing.geometry.layers import verdict
from probing.probes.corpus import check_learnable
from probing.probes.metrics import kept_words
from probing.probes.training import load_probes
from probing.report import Report, write_report
from probing.report.results import beside, markdown, versions
from probing.settings import SETS, settings_of
from probing.states.file import States
from probing.text.trees import read_conllu


def main(args: argparse.Namespace) -> None:
    """Run ``hyptrans probe run``.

    Raises:
        UserError: an option or what it names cannot be used.
    """
    run = _run_of(args)
    # of two simultaneous runs, one would score the other's probes
    with alone(args.out):
        if args.overwrite:
            # delete everything first, so that a run that resumes this one reuses nothing older
            for subject in run.subjects:
                shutil.rmtree(subject.folder, ignore_errors=True)
        pipeline.make(run, control=args.control)
        command = typed_command()
        page = report(run, command, control=args.control)
        told = [table.markdown() for table in beside(page)]
        told += [f"{escaped(name)}: {verdict(layers)}" for name, layers in page.spaces.items()]
        text = markdown(page.models, page.signature, [*page.notes, *told])
        write_json(args.out / "results.json", _plain(_results(run, page, command)))
        write_whole(args.out / "results.md", text)
        write_report(args.out / "report.html", page)
    print(f"{text}\n{args.out / 'results.json'}, results.md and report.html are written")


def _run_of(args: argparse.Namespace) -> Run:
    """Return the run that the options describe.

    Raises:
        UserError: an encoder cannot be used, or the trees cannot be read, lack tags or offer
            nothing to learn.
    """
    trees = {}
    for part in SETS:
        path = getattr(args, part)
        trees[part] = Trees(path, read_conllu(path), sha256(path))
        if part != "test":
            check_learnable(map(len, trees[part].sentences), path)
        if part != "train" or args.control:
            for sentence in trees[part].sentences:
                kept_words(sentence, args.punct)  # needs tags
    settings = settings_of(args)
    # after the trees, as it may fetch models
    subjects = subjects_of(args)
    return Run(args.out, subjects, trees, settings, args.seeds, args.punct, args.device)


def _results(run: Run, page: Report, command: str) -> dict[str, Any]:
    """Return the contents of ``results.json``; ``probe`` has the figures of the table."""
    training, left_out = {}, {}
    for subject in run.subjects:
        training[subject.name] = {
            str(fit.settings.seed): load_probes(fit.file("probes")).courses
            for fit in run.fits(subject)
        }
        left_out[subject.name] = {
            part: States(subject.states(part)).contents.left_out for part in SETS
        }
    return {
        "signature": page.signature,
        "probe": {model.name: model.test for model in page.models},
        "models": page.models,
        "versions": versions(),
        "command": command,
        "settings": run.settings,
        "seeds": run.seeds,
        "trees": {n: {"file": str(t.path), "sha256": t.sha256} for n, t in run.trees.items()},
        "notes": page.notes,
        "comparisons": page.comparisons,
        "arcs": page.arcs,
        "selectivities": page.selectivities,
        "spaces": {
            name: {"layers": layers, "verdict": verdict(layers)}
            for name, layers in page.spaces.items()
        },
        "training": training,
        "left_out": left_out,
    }


def _plain(value: Any) -> Any:
    """Return a value with all dataclasses in it as dictionaries."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
