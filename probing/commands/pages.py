"""What the report of a run shows, out of its files."""

import platform
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from hyptrans.dataprep.corpus import read_lines
from hyptrans.support.errors import UserError
from probing.commands.compare import SETS, Fit, Run
from probing.probes.file import load_probes
from probing.report import ModelResult, Report
from probing.report.data import Vocabulary
from probing.report.pictures import choose, example, predict, radii
from probing.states.file import States
from probing.text.trees import Sentence
from probing.text.vocabulary import unseen_share, vocabulary

TITLE = "Structural probes"
_USES = {"train": "train probes on", "dev": "choose layers on", "test": "score on"}


def texts_of(seen: Sequence[Path], encoders: int) -> list[Path | None]:
    """The text that each trained encoder was trained on, where it is known.

    Args:
        seen: none, one for all, or one for each.
        encoders: their number.

    Raises:
        UserError: the number of texts does not fit, or one is missing.
    """
    texts: list[Path | None] = [*seen] or [None]
    if len(texts) == 1:
        texts *= encoders
    if len(texts) != encoders:
        raise UserError(f"--seen has {len(texts)} values for {encoders} encoders")
    for text in seen:
        if not text.is_file():
            raise UserError(f"--seen {text} is not a file")
    return texts


def vocabularies(run: Run, texts: Sequence[Path | None]) -> dict[str, Vocabulary]:
    """What of the test set's words the trained encoders do not know."""
    trained = [subject for subject in run.subjects if not subject.random]
    known = {text: vocabulary(read_lines(text)) for text in texts if text is not None}
    sentences, found = run.trees["test"].sentences, {}
    for subject, text in zip(trained, texts, strict=True):
        states = States.open(subject.states("test"))
        words = sum(states.lengths)
        unknown, split = states.contents.unknown, states.contents.split
        unseen = unseen_share([sentences[i] for i in states.kept], known[text]) if text else None
        found[subject.name] = Vocabulary(unknown / words, split / words, unseen)
    return found


def about(run: Run, command: str) -> list[tuple[str, list[str]]]:
    """Trees, encoders, date and command, by name."""
    trees = [
        f"{part}: {len(run.trees[part].sentences):,} sentences to {_USES[part]}, "
        f"{run.trees[part].path} (SHA-256 {run.trees[part].sha256[:12]})"
        for part in SETS
    ]
    encoders = []
    for subject in run.subjects:
        if not subject.random:
            contents = States.open(subject.states("test")).contents
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


def report(run: Run, models: Sequence[ModelResult], examples: int, **parts: Any) -> Report:
    """The report, with the trees and radii of the first seed's probes.

    Args:
        run: the run.
        models: its results, of which those of the run's own probes on gold trees are drawn.
        examples: number of sentences.
        parts: the fields of the report that are ready.
    """
    only = run.common("test")
    by_name: Mapping[str, ModelResult] = {model.name: model for model in models}
    predictions: dict[int, dict[str, Any]] = {}
    found_radii = {}
    indices: list[int] = []
    sentences: list[Sentence] = []
    for subject in run.subjects:
        corpus = run.corpus(subject, "test", only)
        trained = load_probes(Fit(run.settings).file(subject, "probes.safetensors"))
        sentences = corpus.sentences
        indices = choose(sentences, examples, run.settings.seed)
        model = by_name[subject.name]
        layers = model.distance_layer, model.depth_layer
        for i in indices:
            shown = predict(corpus, i, trained, layers, run.punct)
            predictions.setdefault(i, {})[subject.name] = shown
        found_radii[subject.name] = radii(corpus, trained, layers[1], run.settings.seed)
    return Report(
        title=TITLE,
        models=list(models),
        examples=[example(sentences[i], predictions[i], run.punct) for i in indices],
        radii=found_radii,
        **parts,
    )
