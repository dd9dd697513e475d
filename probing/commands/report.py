"""Collect the contents of the report page from a run's scores and files."""

import math
import platform
import random
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

import torch
from torch import Tensor

from hyptrans.geometry import lorentz
from hyptrans.support.errors import UserError
from hyptrans.support.lines import read_lines
from probing.commands.pipeline import Run, Scored, spaces
from probing.commands.sources import one_for_each
from probing.probes.corpus import Corpus
from probing.probes.file import load_probes
from probing.probes.metrics import ARC_LENGTHS, kept_words, predicted_root
from probing.probes.significance import Comparison, compare
from probing.probes.training import Trained
from probing.report.data import (
    Arcs,
    Example,
    ModelResult,
    Prediction,
    RankPoint,
    Report,
    Selectivity,
    Vocabulary,
)
from probing.report.results import TITLES, signature, table
from probing.settings import SETS, Punctuation
from probing.states.file import States
from probing.text.trees import Sentence, depths, minimum_spanning_edges
from probing.text.vocabulary import unseen_share, vocabulary

TITLE = "Structural probes"
_USES = {"train": "train probes on", "dev": "choose layers on", "test": "score on"}
SHORTEST, LONGEST = 6, 16
"""Lengths of the sentences to draw, in words."""
WORDS = 1500
"""Most words per model whose radii are drawn."""


def report(
    run: Run,
    scored: Sequence[Scored],
    ranks: list[RankPoint],
    selectivities: list[Selectivity],
    texts: Sequence[Path | None],
    *,
    examples: int,
    command: str,
) -> Report:
    """Return everything that the page shows.

    Args:
        run: the run.
        scored: results of the baselines and of the run's own probes; drawn trees and radii are of
            the first seed.
        ranks: points of rank curves.
        selectivities: results of probes on gold and control trees.
        texts: training text of each trained encoder.
        examples: number of sentences to draw.
        command: command that the user typed.
    """
    models = [model for model, _ in scored]
    by_name = {model.name: model for model in models}
    only = run.common("test")
    predictions: dict[int, dict[str, Prediction]] = {}
    found_radii = {}
    sentences: list[Sentence] = []
    for subject in run.subjects:
        corpus = run.corpus(subject, "test", only)
        trained = load_probes(run.fits(subject, run.settings)[0].probes)
        sentences, model = corpus.sentences, by_name[subject.name]
        layers = model.distance_layer, model.depth_layer
        for i in choose(sentences, examples, run.settings.seed):
            shown = predict(corpus, i, trained, layers, run.punct)
            predictions.setdefault(i, {})[subject.name] = shown
        found_radii[subject.name] = radii(corpus, trained, layers[1], run.settings.seed)
    return Report(
        title=TITLE,
        signature=signature(run.settings, run.punct, run.seeds),
        models=models,
        examples=[example(sentences[i], found, run.punct) for i, found in predictions.items()],
        radii=found_radii,
        table=table(models),
        notes=_notes(run, models),
        about=about(run, command),
        comparisons=_comparisons(scored, run.subjects[0].name),
        ranks=ranks,
        arcs=_arcs(scored),
        selectivities=selectivities,
        vocabularies=vocabularies(run, texts),
        spaces=spaces(run),
    )


def texts_of(seen: Sequence[Path], encoders: int) -> list[Path | None]:
    """Return the training text of each trained encoder, None if unknown.

    Raises:
        UserError: the number of texts does not fit, or one is missing.
    """
    texts = one_for_each("--seen", seen, encoders, "encoders")
    for text in seen:
        if not text.is_file():
            raise UserError(f"--seen {text} is not a file")
    return texts


def vocabularies(run: Run, texts: Sequence[Path | None]) -> dict[str, Vocabulary]:
    """Return the shares of the test set's words that each trained encoder does not know."""
    known = {text: vocabulary(read_lines(text)) for text in texts if text is not None}
    sentences, found = run.trees["test"].sentences, {}
    for subject, text in zip(run.trained, texts, strict=True):
        states = States(subject.states("test"))
        words = sum(states.lengths)
        unknown, split = states.contents.unknown, states.contents.split
        unseen = unseen_share([sentences[i] for i in states.kept], known[text]) if text else None
        found[subject.name] = Vocabulary(unknown / words, split / words, unseen)
    return found


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


def _notes(run: Run, models: Sequence[ModelResult]) -> list[str]:
    """Return notes on the sentences that were scored and those that were left out."""
    scored, total = len(run.common("test")), len(run.trees["test"].sentences)
    notes = [f"Scored on {scored} of {total} sentences of the test set."]
    if scored < total:
        notes.append(
            "The others are too long for some encoder or have words that it cannot take; "
            "results.json lists them."
        )
    missing = [
        f"{count} in {TITLES[metric]} of {model.name}"
        for model in models
        for metric, count in model.undefined.items()
        if count
    ]
    if missing:
        notes.append(
            "A sentence whose correlation is undefined in one seed, as all of its predictions are "
            f"equal, is left out of it in all: {', '.join(missing)}."
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


@torch.no_grad()
def radii(corpus: Corpus, trained: Trained, layer: int, seed: int) -> list[tuple[int, float]]:
    """Return words' gold depths and their points' distances from the origin; empty if flat."""
    found: list[tuple[int, float]] = []
    order = list(range(len(corpus)))
    random.Random(seed).shuffle(order)
    for index in order:
        batch = corpus.batch([index])
        points = trained.depth.lorentz_points(batch.states[[layer]], [layer])
        if points is None or len(found) >= WORDS:
            break
        origin = lorentz.origin(points.size(-1))
        lengths = lorentz.distance(points[0, 0], origin).tolist()
        found += zip(map(int, batch.depths[0].tolist()), lengths, strict=True)
    return [(depth, radius) for depth, radius in found[:WORDS] if math.isfinite(radius)]
