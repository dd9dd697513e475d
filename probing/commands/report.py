"""Collect the contents of the report page from a run's scores and files."""

import platform
import random
from collections.abc import Sequence
from datetime import datetime, timezone

import torch
from torch import Tensor

from probing.commands.pipeline import Run, Scored, spaces
from probing.probes.corpus import Corpus
from probing.probes.file import load_probes
from probing.probes.metrics import ARC_LENGTHS, kept_words, predicted_root
from probing.probes.significance import Comparison, compare
from probing.probes.training import Trained
from probing.report.data import (
    Arcs,
    Example,
    Prediction,
    Report,
    Selectivity,
)
from probing.report.results import signature, table
from probing.settings import SETS, Punctuation
from probing.states.file import States
from probing.text.trees import Sentence, depths, minimum_spanning_edges

TITLE = "Structural probes"
_USES = {"train": "train probes on", "dev": "choose layers on", "test": "score on"}
SHORTEST, LONGEST = 6, 16
"""Lengths of the sentences to draw, in words."""
EXAMPLES = 6
"""Number of sentences to draw."""


def report(
    run: Run, scored: Sequence[Scored], selectivities: list[Selectivity], command: str
) -> Report:
    """Return everything that the page shows.

    Args:
        run: the run.
        scored: results of the baselines and of the run's own probes; drawn trees are of the first
            seed.
        selectivities: results of probes on gold and control trees.
        command: command that the user typed.
    """
    models = [model for model, _ in scored]
    by_name = {model.name: model for model in models}
    only = run.common("test")
    predictions: dict[int, dict[str, Prediction]] = {}
    sentences: list[Sentence] = []
    for subject in run.subjects:
        corpus = run.corpus(subject, "test", only)
        trained = load_probes(run.fits(subject)[0].probes)
        sentences, model = corpus.sentences, by_name[subject.name]
        layers = model.distance_layer, model.depth_layer
        for i in choose(sentences, EXAMPLES, run.settings.seed):
            shown = predict(corpus, i, trained, layers, run.punct)
            predictions.setdefault(i, {})[subject.name] = shown
    return Report(
        title=TITLE,
        signature=signature(run.settings, run.punct, run.seeds),
        models=models,
        examples=[example(sentences[i], found, run.punct) for i, found in predictions.items()],
        table=table(models),
        notes=_notes(run),
        about=about(run, command),
        comparisons=_comparisons(scored, run.subjects[0].name),
        arcs=_arcs(scored),
        selectivities=selectivities,
        spaces=spaces(run),
    )


def about(run: Run, command: str) -> list[tuple[str, list[str]]]:
    """Return descriptions of trees, encoders, date and command, by name."""
    trees = [
        f"{part}: {len(run.trees[part].sentences):,} sentences to {_USES[part]}, "
        f"{run.trees[part].path} (SHA-256 {run.trees[part].sha256[:12]})"
        for part in SETS
    ]
    encoders = []
    for subject in run.trained:
        contents = States(subject.states("test")).contents
        data = f", data {subject.source.data}" if subject.source.data else ""
        encoders.append(
            f"{subject.name}: {contents.architecture}, {subject.source.name} "
            f"({contents.identity.rpartition('@')[2][:12]}){data}"
        )
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


def _comparisons(found: Sequence[Scored], first: str) -> dict[str, list[Comparison]]:
    """Compare the first encoder with all others."""
    (own,) = (scores for model, scores in found if model.name == first)
    return {model.name: compare(own, scores) for model, scores in found if model.name != first}


def _notes(run: Run) -> list[str]:
    """Return notes on the sentences that were scored and those that were left out."""
    scored, total = len(run.common("test")), len(run.trees["test"].sentences)
    notes = [f"Scored on {scored} of {total} sentences of the test set."]
    if scored < total:
        notes.append(
            "The others are too long for some encoder or have words that it cannot take; "
            "results.json lists them."
        )
    return notes


def choose(sentences: Sequence[Sentence], count: int, seed: int) -> list[int]:
    """Choose sentences to draw, if possible of suitable length; return indices, shortest first."""
    fitting = [i for i, s in enumerate(sentences) if SHORTEST <= len(s) <= LONGEST]
    fitting = fitting or list(range(len(sentences)))
    chosen = random.Random(seed).sample(fitting, min(count, len(fitting)))
    return sorted(chosen, key=lambda i: len(sentences[i]))


def example(sentence: Sentence, predictions: dict[str, Prediction], punct: Punctuation) -> Example:
    """Return a sentence with its gold tree and predictions."""
    return Example(
        words=list(sentence.words),
        gold_edges=sentence.edges,
        gold_root=sentence.root,
        gold_depths=depths(sentence).tolist(),
        punctuation=[not kept for kept in kept_words(sentence, punct)],
        predictions=predictions,
    )


@torch.no_grad()
def predict(
    corpus: Corpus, index: int, trained: Trained, layers: tuple[int, int], punct: Punctuation
) -> Prediction:
    """Return what the probes of the chosen distance and depth layer predict for one sentence."""
    batch = corpus.batch([index])
    at = [[layer] for layer in layers]
    for_distance, for_depth = (batch.states[layer] for layer in at)
    keep = kept_words(corpus.sentences[index], punct)
    distances = trained.distance.distances(for_distance, at[0])[0, 0].numpy()
    found = trained.depth.depths(for_depth, at[1])[0, 0]
    return Prediction(
        edges=sorted(minimum_spanning_edges(distances, keep)),
        depths=found.tolist(),
        root=predicted_root(found.numpy(), keep),
        distance_points=_first(trained.distance.lorentz_points(for_distance, at[0])),
    )


def _first(points: Tensor | None) -> Tensor | None:
    return None if points is None else points[0, 0]
