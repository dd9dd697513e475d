"""Collect the contents of the report page from a run's scores and files."""

import platform
import random
from collections.abc import Sequence
from datetime import datetime, timezone

import torch

from probing.commands.pipeline import (
    Run,
    Scored,
    of_baselines,
    over_each_seed,
    selectivities,
    spaces,
)
from probing.probes.corpus import Corpus
from probing.probes.metrics import ARC_LENGTHS, kept_words, predicted_root
from probing.probes.significance import compare
from probing.probes.training import Trained, load_probes
from probing.report.data import Arcs, Example, Prediction, Report
from probing.report.results import signature, table
from probing.settings import SETS, Punctuation
from probing.states.file import States
from probing.text.trees import Sentence, minimum_spanning_edges

TITLE = "Structural probes"
_USES = {"train": "train probes on", "dev": "choose layers on", "test": "score on"}
SHORTEST, LONGEST = 6, 16
"""Lengths of the sentences to draw, in words."""
EXAMPLES = 6
"""Number of sentences to draw."""


def report(run: Run, command: str, *, control: bool) -> Report:
    """Return everything that the page shows.

    Args:
        run: a run whose steps are done; drawn trees are of its first seed.
        command: command that the user typed.
        control: whether the run trained probes on control trees.
    """
    gold = run.scored_trees()
    scored = of_baselines(gold, run.punct)
    scored += [over_each_seed(run, subject) for subject in run.subjects]
    models = [model for model, _ in scored]
    chosen = _choose(gold, run.settings.seed)
    examples = [_example(gold[i], run.punct) for i in chosen]
    common = run.common("test")
    for subject in run.subjects:
        corpus = run.corpus(subject, "test", common)
        trained = load_probes(run.fits(subject)[0].file("probes"))
        (model,) = (model for model in models if model.name == subject.name)
        layers = model.distance_layer, model.depth_layer
        for example, i in zip(examples, chosen, strict=True):
            example.predictions[subject.name] = _predict(corpus, i, trained, layers, run.punct)
    (own,) = (scores for model, scores in scored if model.name == run.subjects[0].name)
    others = [(model.name, scores) for model, scores in scored if scores is not own]
    return Report(
        title=TITLE,
        signature=signature(run.settings, run.punct, run.seeds),
        models=models,
        examples=examples,
        table=table(models),
        notes=_notes(run, len(gold)),
        about=_about(run, command),
        comparisons={name: compare(own, scores) for name, scores in others},
        arcs=_arcs(scored),
        selectivities=selectivities(run) if control else [],
        spaces=spaces(run),
    )


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


def _arcs(scored: Sequence[Scored]) -> Arcs | None:
    """Return UUAS by length of edges; None if there are no edges."""
    counts = scored[0][1].arcs.sum(0).tolist()
    shares = {model.name: scores.by_arc()[0].tolist() for model, scores in scored}
    return Arcs(list(ARC_LENGTHS), counts, shares) if any(counts) else None


def _notes(run: Run, scored: int) -> list[str]:
    """Return notes on the sentences that were scored and those that were left out."""
    total = len(run.trees["test"].sentences)
    notes = [f"Scored on {scored} of {total} sentences of the test set."]
    if scored < total:
        notes.append(
            "The others are too long for some encoder or have words that it cannot take; "
            "results.json lists them."
        )
    return notes


def _choose(sentences: Sequence[Sentence], seed: int) -> list[int]:
    """Choose sentences to draw, if possible of suitable length; return indices, shortest first."""
    fitting = [i for i, s in enumerate(sentences) if SHORTEST <= len(s) <= LONGEST]
    fitting = fitting or list(range(len(sentences)))
    chosen = random.Random(seed).sample(fitting, min(EXAMPLES, len(fitting)))
    return sorted(chosen, key=lambda i: len(sentences[i]))


def _example(sentence: Sentence, punct: Punctuation) -> Example:
    """Return a sentence with its gold tree, without predictions."""
    return Example(
        words=list(sentence.words),
        gold_edges=sentence.edges,
        gold_root=sentence.root,
        punctuation=[not kept for kept in kept_words(sentence, punct)],
        predictions={},
    )


@torch.no_grad()
def _predict(
    corpus: Corpus, index: int, trained: Trained, layers: tuple[int, int], punct: Punctuation
) -> Prediction:
    """Return what the probes of the chosen distance and depth layer predict for one sentence."""
    batch = corpus.batch([index])
    at = [[layer] for layer in layers]
    for_distance, for_depth = (batch.states[layer] for layer in at)
    keep = kept_words(corpus.sentences[index], punct)
    distances = trained.distance.distances(for_distance, at[0])[0, 0].numpy()
    depths = trained.depth.depths(for_depth, at[1])[0, 0].numpy()
    points = trained.distance.lorentz_points(for_distance, at[0])
    return Prediction(
        edges=sorted(minimum_spanning_edges(distances, keep)),
        root=predicted_root(depths, keep),
        distance_points=None if points is None else points[0, 0],
    )
