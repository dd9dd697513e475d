"""Score probes: choose layers on the development set and report them on the test set."""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from hyptrans.support.files import write_json
from probing.probes import baselines
from probing.probes.corpus import Corpus
from probing.probes.evaluation import best_layer, evaluate
from probing.probes.file import check_fits, load_probes
from probing.probes.metrics import Scores, check_tags
from probing.probes.training import Trained
from probing.report.data import ModelResult, Role
from probing.report.results import describe, markdown, signature, versions
from probing.settings import Punctuation
from probing.text.trees import Sentence


def main(args: argparse.Namespace) -> None:
    """Run ``python -m probing evaluate``."""
    trained = load_probes(args.probes)
    sets = []
    for states, trees in ((args.dev_states, args.dev), (args.test_states, args.test)):
        corpus = Corpus.open(states, trees)
        check_fits(trained, corpus.states, args.probes, str(states))
        check_tags(corpus.sentences, args.punct)
        sets.append(corpus)
    result, _ = score(
        trained,
        *sets,
        name=args.name,
        architecture=sets[1].states.architecture,
        punct=args.punct,
    )
    models = [*(found for found, _ in of_baselines(sets[1].sentences, args.punct)), result]
    line = signature(trained.settings, args.punct)
    if args.out is not None:
        write_json(args.out, as_json(models, line))
    print(markdown(models, line))


def score(
    trained: Trained,
    dev_set: Corpus,
    test_set: Corpus,
    *,
    name: str,
    architecture: str,
    punct: Punctuation,
    role: Role = "encoder",
    of: str = "",
) -> tuple[ModelResult, Scores]:
    """All layers on the development set, those chosen there on the test set.

    Returns:
        The result, and its scores on the test set by sentence.
    """
    probes = trained.distance, trained.depth
    layers = evaluate(dev_set, *probes, punct=punct, name=f"{name}, dev").metrics()
    chosen = best_layer(layers, "distance"), best_layer(layers, "depth")
    needed = sorted(set(chosen))
    test = evaluate(test_set, *probes, punct=punct, layers=needed, name=f"{name}, test")
    scores = test.of(needed.index(chosen[0]), needed.index(chosen[1]))
    result = ModelResult(
        name=name,
        architecture=architecture,
        space=describe(trained.distance.spaces),
        probe=trained.settings.probe,
        layers=layers,
        distance_layer=chosen[0],
        depth_layer=chosen[1],
        test=scores.metrics()[0],
        role=role,
        of=of,
    )
    return result, scores


def of_baselines(
    sentences: Sequence[Sentence], punct: Punctuation
) -> list[tuple[ModelResult, Scores]]:
    """The trees that need no states, with their scores by sentence."""
    found = []
    for name in baselines.BASELINES:
        scores = baselines.score(name, sentences, punct)
        (test,) = scores.metrics()
        found.append((ModelResult(name, "", "", "", [], 0, 0, test, role="baseline"), scores))
    return found


def as_json(models: Sequence[ModelResult], line: str) -> dict[str, Any]:
    """What ``results.json`` says of models; ``probe`` has the figures of the table."""
    return {
        "signature": line,
        "probe": {model.name: model.test for model in models},
        "models": [asdict(model) for model in models],
        "versions": versions(),
    }


def save_scored(path: Path, result: ModelResult, scores: Scores, line: str) -> None:
    """Write one model's figures with their parts by sentence."""
    parts = {field.name: getattr(scores, field.name).tolist() for field in fields(Scores)}
    write_json(path, as_json([result], line) | {"sentences": parts})


def read_scored(path: Path) -> tuple[ModelResult, Scores]:
    """Read what :func:`save_scored` wrote; null is NaN."""
    found = json.loads(path.read_text(encoding="utf-8"))
    (model,) = found["models"]
    nan = float("nan")

    def numbers(metrics: dict[str, float | None]) -> dict[str, float]:
        return {name: nan if value is None else value for name, value in metrics.items()}

    model["layers"] = [numbers(layer) for layer in model["layers"]]
    model["chosen"] = [(one, other) for one, other in model["chosen"]]
    kept = found["sentences"]
    whole = {name: np.array(kept.pop(name), int) for name in ("lengths", "edges", "arcs")}
    # None becomes NaN as a float
    scores = Scores(**whole, **{name: np.array(rows, float) for name, rows in kept.items()})
    return ModelResult(**model | {"test": numbers(model["test"])}), scores
