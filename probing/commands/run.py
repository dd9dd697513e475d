"""Run the whole pipeline: probe and compare several encoders, and write a report."""

import argparse
import platform
import random
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timezone
from typing import Any

import torch

from hyptrans.support.files import sha256, write_json, write_whole
from hyptrans.support.options import given_settings
from hyptrans.support.steps import alone, follow
from hyptrans.support.tables import escaped
from probing.commands.pipeline import Run, Trees, scored, spaces, steps
from probing.commands.sources import subjects_of
from probing.geometry.layers import verdict
from probing.probes import baselines
from probing.probes.control import control_tree
from probing.probes.corpus import Corpus, check_learnable
from probing.probes.evaluation import SELECTED_BY, check_choosable
from probing.probes.metrics import ARC_LENGTHS, kept_words, predicted_root
from probing.probes.significance import compare
from probing.probes.training import Trained, load_probes
from probing.report.data import Arcs, Example, ModelResult, Prediction, Report, Scored, Selectivity
from probing.report.page import render
from probing.report.results import beside, markdown, origin, over_seeds, signature
from probing.settings import SETS, Punctuation, Settings
from probing.states.file import States
from probing.text.trees import Sentence, minimum_spanning_edges, read_conllu

_USES = {"train": "train probes on", "dev": "choose layers on", "test": "score on"}
SHORTEST, LONGEST = 6, 16
"""Lengths of the sentences to draw, in words."""
EXAMPLES = 6
"""Number of sentences to draw."""


def main(args: argparse.Namespace) -> None:
    """Run ``hyptrans probe run``."""
    run = _run_of(args)
    # of two simultaneous runs, one would score the other's probes
    with alone(args.out):
        if args.overwrite:
            # delete everything first, so that a run that resumes this one reuses nothing older
            for subject in run.subjects:
                shutil.rmtree(subject.folder, ignore_errors=True)
        follow(steps(run), args.out)
        made_by = origin()
        page = _report(run, made_by["command"])
        lines = [table.markdown() for table in beside(page)]
        lines += [f"{escaped(name)}: {verdict(layers)}" for name, layers in page.spaces.items()]
        text = markdown(page.models, page.signature, [*page.notes, *lines])
        write_json(args.out / "results.json", _results(run, page) | made_by)
        write_whole(args.out / "results.md", text)
        write_whole(args.out / "report.html", render(page))
    print(f"{text}\n{args.out / 'results.json'}, results.md and report.html are written")


def _run_of(args: argparse.Namespace) -> Run:
    """Return the run that the options describe, after checks of its trees and encoders."""
    trees = {}
    for part in SETS:
        path = getattr(args, part)
        trees[part] = Trees(path, read_conllu(path), sha256(path))
        if part != "train" or args.control:
            for sentence in trees[part].sentences:
                kept_words(sentence, args.punct)  # needs tags
    check_learnable(map(len, trees["train"].sentences), trees["train"].path)
    check_choosable(trees["dev"].sentences, args.punct, trees["dev"].path)
    # after the trees, as it may fetch models
    subjects, settings = subjects_of(args), given_settings(args, Settings)
    controls = args.seeds, args.control, args.punct, args.device
    return Run(args.out, subjects, trees, settings, *controls)


def _results(run: Run, page: Report) -> dict[str, Any]:
    """Return the contents of ``results.json``; ``probe`` has the figures of the table."""
    plain = asdict(replace(page, examples=[]))
    training, left_out = {}, {}
    for subject in run.subjects:
        training[subject.name] = {
            str(fit.settings.seed): {
                task: [asdict(course) for course in courses]
                for task, courses in load_probes(fit.file("probes")).courses.items()
            }
            for fit in run.fits(subject)
        }
        contents = {part: States(subject.states(part)).contents for part in SETS}
        left_out[subject.name] = {part: one.left_out for part, one in contents.items()}
    shown = ("signature", "models", "notes", "comparisons", "arcs", "selectivities")
    return {name: plain[name] for name in shown} | {
        "probe": {model.name: model.test for model in page.models},
        "settings": asdict(run.settings),
        "seeds": run.seeds,
        "trees": {n: {"file": str(t.path), "sha256": t.sha256} for n, t in run.trees.items()},
        "spaces": {
            name: {"layers": layers, "verdict": verdict(page.spaces[name])}
            for name, layers in plain["spaces"].items()
        },
        "training": training,
        "left_out": left_out,
    }


def _report(run: Run, command: str) -> Report:
    """Return everything that the page shows of a run whose steps are done.

    Drawn trees are of the first seed; ``command`` is what the user typed.
    """
    common = run.common("test")
    gold = list(common.values())
    found = [*_baselines(gold, run.punct)]
    found += [over_seeds([scored(fit) for fit in run.fits(subject)]) for subject in run.subjects]
    models = [model for model, _ in found]
    (own,) = (scores for model, scores in found if model.name == run.subjects[0].name)
    counts = own.arcs.sum(0).tolist()
    shares = {model.name: scores.by_arc()[0].tolist() for model, scores in found}
    return Report(
        signature=signature(run.settings, run.punct, run.seeds),
        models=models,
        examples=_examples(run, common, models),
        notes=_notes(len(gold), len(run.trees["test"].sentences)),
        about=_about(run, command),
        comparisons={m.name: compare(own, scores) for m, scores in found if scores is not own},
        arcs=Arcs(list(ARC_LENGTHS), counts, shares) if any(counts) else None,
        selectivities=_selectivities(run, gold) if run.control else [],
        spaces=spaces(run),
    )


def _baselines(sentences: Sequence[Sentence], punct: Punctuation) -> Iterable[Scored]:
    """Yield the results of the baselines, which need no states, with scores by sentence."""
    for name in baselines.BASELINES:
        scores = baselines.score(name, sentences, punct)
        (test,) = scores.metrics()
        yield ModelResult(name, "", "", "", [], 0, 0, test, role="baseline"), scores


def _selectivities(run: Run, gold: Sequence[Sentence]) -> list[Selectivity]:
    """Return how well a chain of neighbours and each encoder's probes fit gold and control trees.

    Each probe uses its best layer on the development set.
    """
    metric = SELECTED_BY["distance"]
    made = [control_tree(sentence, run.settings.seed, run.punct) for sentence in gold]
    chain = [baselines.score(baselines.CHAIN, trees, run.punct) for trees in (gold, made)]
    found = [Selectivity(baselines.CHAIN, *(one.parts(metric).tolist() for one in chain))]
    for subject in run.subjects:
        fits = run.fits(subject), run.fits(subject, control=True)
        pair = [[scored(fit)[0].test[metric] for fit in kind] for kind in fits]
        found.append(Selectivity(subject.name, *pair))
    return found


def _about(run: Run, command: str) -> list[tuple[str, list[str]]]:
    """Return descriptions of trees, encoders, date and command, by name."""
    trees = [
        f"{part}: {len(run.trees[part].sentences):,} sentences to {_USES[part]}, "
        f"{run.trees[part].path} (SHA-256 {run.trees[part].sha256[:12]})"
        for part in SETS
    ]
    encoders = []
    for subject in run.trained:
        contents, folder = States(subject.states("test")).contents, subject.text.get("data")
        data = f", data {folder}" if folder else ""
        known = f"{contents.architecture}, {subject.typed} ({contents.identity[:12]})"
        encoders.append(f"{subject.name}: {known}{data}")
    date = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    return [
        ("Trees", trees),
        ("Encoders", encoders),
        ("Date", [f"{date}, Python {platform.python_version()}"]),
        ("Command", [command]),
    ]


def _notes(scored: int, total: int) -> list[str]:
    """Return notes on the sentences that were scored and those that were left out."""
    notes = [f"Scored on {scored} of {total} sentences of the test set."]
    if scored < total:
        why = "are too long for some encoder or have words that it cannot take"
        notes.append(f"The others {why}; results.json lists them.")
    return notes


def _examples(
    run: Run, common: Mapping[int, Sentence], models: Sequence[ModelResult]
) -> list[Example]:
    """Draw sentences, if possible of suitable length, the shortest first; predict their trees."""
    gold = list(common.values())
    fitting = [i for i, s in enumerate(gold) if SHORTEST <= len(s) <= LONGEST]
    fitting = fitting or list(range(len(gold)))
    chosen = random.Random(run.settings.seed).sample(fitting, min(EXAMPLES, len(fitting)))
    chosen.sort(key=lambda i: len(gold[i]))
    keep = [kept_words(gold[i], run.punct) for i in chosen]
    examples = [
        Example(list(gold[i].words), gold[i].edges, gold[i].root, (~kept).tolist(), {})
        for i, kept in zip(chosen, keep, strict=True)
    ]
    for subject in run.subjects:
        corpus = run.corpus(subject, "test", common)
        trained = load_probes(run.fits(subject)[0].file("probes"))
        (model,) = (model for model in models if model.name == subject.name)
        layers = model.distance_layer, model.depth_layer
        for example, i, kept in zip(examples, chosen, keep, strict=True):
            example.predictions[subject.name] = _predict(corpus, i, trained, layers, kept)
    return examples


@torch.no_grad()
def _predict(
    corpus: Corpus, index: int, trained: Trained, layers: tuple[int, int], keep: Any
) -> Prediction:
    """Return what the probes of the chosen distance and depth layer predict for one sentence.

    Shapes: ``keep``, the words that are not punctuation, ``[n]``, bool.
    """
    states = corpus.batch([index]).states
    (for_distance, distance), (for_depth, depth) = ((states[[one]], [one]) for one in layers)
    distances = trained.distance.distances(for_distance, distance)[0, 0].numpy()
    depths = trained.depth.depths(for_depth, depth)[0, 0].numpy()
    points = trained.distance.lorentz_points(for_distance, distance)
    return Prediction(
        edges=sorted(minimum_spanning_edges(distances, keep)),
        root=predicted_root(depths, keep),
        distance_points=None if points is None else points[0, 0],
    )
