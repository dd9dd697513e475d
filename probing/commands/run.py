"""The whole of it: extract, train, evaluate and compare several checkpoints, and write a report."""

import argparse
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hyptrans import __version__
from hyptrans.support.errors import UserError
from hyptrans.support.files import sha256, write_json, write_whole
from hyptrans.support.steps import digest
from probing.commands import extract
from probing.commands.evaluate import as_json, of_baselines, result_of, score
from probing.commands.options import (
    add_punct_argument,
    add_training_arguments,
    settings_of,
)
from probing.commands.stages import finished, of_data
from probing.commands.subjects import Subject, subjects_of
from probing.commands.train import fit
from probing.probes.corpus import Corpus
from probing.probes.file import load_probes
from probing.probes.metrics import Punctuation, kept_words
from probing.probes.training import Settings
from probing.report import ModelResult, Report, write_report
from probing.report.pictures import choose, example, predict, radii
from probing.report.results import markdown, signature, table
from probing.states.extract import extract_file
from probing.states.file import States
from probing.text.trees import Sentence, read_conllu

SETS = ("train", "dev", "test")
TITLE = "Structural probes"


@dataclass(frozen=True)
class Trees:
    """A treebank's part."""

    path: Path
    sentences: list[Sentence]
    sha256: str


@dataclass
class Run:
    """What all stages of a run share."""

    out: Path
    subjects: list[Subject]
    trees: dict[str, Trees]
    settings: Settings
    punct: Punctuation
    seed: int
    options: dict[str, Any]
    examples: int
    seconds: dict[str, dict[str, float]] = field(default_factory=dict)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``python -m probing run``."""
    add = parser.add_argument
    add(
        "--checkpoint",
        type=Path,
        action="append",
        required=True,
        metavar="FILE",
        help="checkpoint of fairseq; may be given several times",
    )
    extract.add_model_arguments(parser)
    # several checkpoints may have several data folders
    add(
        "--data",
        type=Path,
        action="append",
        default=[],
        metavar="DIR",
        help="folder that data-prep/ wrote for the checkpoint; one for all, or one for each",
    )
    add("--names", nargs="+", metavar="NAME", help="labels (default: the checkpoints' folders)")
    for name, use in zip(SETS, ("train probes", "choose layers", "report"), strict=True):
        add(f"--{name}", type=Path, required=True, metavar="CONLLU", help=f"trees to {use} on")
    add("--out", type=Path, required=True, metavar="DIR", help="folder to write to")
    add("--no-random", action="store_true", help="leave out encoders with fresh parameters")
    add(
        "--examples",
        type=int,
        default=6,
        metavar="N",
        help="sentences drawn in the report (default: %(default)s)",
    )
    add_punct_argument(parser)
    add_training_arguments(parser)


def main(args: argparse.Namespace) -> None:
    """Run ``python -m probing run``."""
    settings = settings_of(args)
    subjects = subjects_of(
        args.checkpoint, args.data, args.names, args.out, random=not args.no_random
    )
    trees = {name: _trees(getattr(args, name)) for name in SETS}
    for part in ("dev", "test"):
        for sentence in trees[part].sentences:
            # tags are missing now, not after an hour
            kept_words(sentence, args.punct)
    options = extract.model_options(args)
    del options["data"]
    run = Run(
        args.out, subjects, trees, settings, args.punct, args.seed, options, max(0, args.examples)
    )
    models, notes = compare(run)
    line = signature(settings, args.punct)
    text = markdown(models, line, notes)
    about = {
        "command": shlex.join(["python", "-m", "probing", *sys.argv[1:]]),
        "settings": asdict(settings),
        "trees": {n: {"file": str(t.path), "sha256": t.sha256} for n, t in trees.items()},
        "notes": notes,
        "seconds": run.seconds,
    }
    write_json(args.out / "results.json", as_json(models, line) | about | _training(run))
    write_whole(args.out / "results.md", text)
    write_report(args.out / "report.html", _report(run, models, line))
    print(f"{text}\n{args.out / 'results.json'}, results.md and report.html are written")


def _trees(path: Path) -> Trees:
    return Trees(path, read_conllu(path), sha256(path))


def compare(run: Run) -> tuple[list[ModelResult], list[str]]:
    """Baselines and all encoders, and notes on the sentences that they were compared on."""
    keys = {subject.name: _extract(run, subject) for subject in run.subjects}
    only = {part: _common(run, part) for part in ("dev", "test")}
    chosen = [s for i, s in enumerate(run.trees["test"].sentences) if i in only["test"]]
    models = of_baselines(chosen, run.punct)
    for subject in run.subjects:
        models.append(_figures(run, subject, keys[subject.name], only))
    total = len(run.trees["test"].sentences)
    notes = [f"Scored on {len(chosen)} of {total} sentences of the test set."]
    if len(chosen) < total:
        notes[0] += " The others have words that some encoder cannot take; extract listed them."
    return models, notes


def _extract(run: Run, subject: Subject) -> dict[str, str]:
    """Make the three files of states; returns what each was made from."""
    keys = {}
    inputs = {
        "version": __version__,
        "checkpoint": sha256(subject.checkpoint),
        "data": of_data(subject.data) if subject.data else {},
        "random": subject.random,
        "seed": run.seed if subject.random else 0,
        "options": {k: v for k, v in run.options.items() if k not in ("batch_tokens", "device")},
    }
    for part, trees in run.trees.items():
        own = inputs | {"trees": trees.sha256}
        keys[part] = digest(own)
        out = subject.states(part)

        def make(out: Path = out, path: Path = trees.path) -> None:
            states = extract_file(
                subject.checkpoint,
                path,
                out,
                data=subject.data,
                random=subject.random,
                seed=run.seed,
                **run.options,
            )
            print(extract.summary(states), file=sys.stderr)

        _timed(run, subject, "extract", out, own, make)
    return keys


def _figures(
    run: Run, subject: Subject, keys: dict[str, str], only: dict[str, set[int]]
) -> ModelResult:
    """Train and score the probes of one encoder."""
    inputs = {part: keys[part] for part in ("train", "dev")} | {"settings": asdict(run.settings)}
    probes = subject.probes(run.settings.probe)

    def make_probes() -> None:
        train_set, dev_set = (_corpus(run, subject, part) for part in ("train", "dev"))
        fit(train_set, dev_set, run.settings, probes, name=subject.name)

    _timed(run, subject, "train", probes, inputs, make_probes)
    inputs |= {"test": keys["test"], "punct": run.punct, "name": subject.name}
    inputs |= {"only": digest({part: sorted(places) for part, places in only.items()})}
    figures = subject.folder / f"{run.settings.probe}.figures.json"

    def make_figures() -> None:
        dev_set, test_set = (_corpus(run, subject, p, only[p]) for p in ("dev", "test"))
        result = score(
            load_probes(probes),
            dev_set,
            test_set,
            name=subject.name,
            architecture=States.open(subject.states("test")).architecture,
            punct=run.punct,
            baseline=subject.random,
        )
        write_json(figures, as_json([result], signature(run.settings, run.punct)))

    _timed(run, subject, "evaluate", figures, inputs, make_figures)
    return result_of(figures)


def _timed(
    run: Run,
    subject: Subject,
    stage: str,
    path: Path,
    inputs: dict[str, Any],
    make: Callable[[], None],
) -> None:
    start = time.perf_counter()
    finished(path, inputs, make)
    spent = run.seconds.setdefault(subject.name, {})
    spent[stage] = round(spent.get(stage, 0.0) + time.perf_counter() - start, 1)


def _corpus(run: Run, subject: Subject, part: str, only: set[int] | None = None) -> Corpus:
    path = subject.states(part)
    return Corpus(States.open(path), run.trees[part].sentences, str(path), only)


def _common(run: Run, part: str) -> set[int]:
    """Places of the sentences that every encoder has states of, so that all are scored alike.

    Raises:
        UserError: there is none.
    """
    kept = [set(States.open(subject.states(part)).kept) for subject in run.subjects]
    common = set.intersection(*kept)
    if not common:
        raise UserError(f"no sentence of {run.trees[part].path} has states of every checkpoint")
    return common


def _training(run: Run) -> dict[str, Any]:
    """How the training of every probe went, and the sentences that have no states."""
    training, left_out = {}, {}
    for subject in run.subjects:
        courses = load_probes(subject.probes(run.settings.probe)).courses
        training[subject.name] = {task: [asdict(c) for c in courses[task]] for task in courses}
        left_out[subject.name] = {
            part: [asdict(left) for left in States.open(subject.states(part)).left_out]
            for part in SETS
        }
    return {"training": training, "left_out": left_out}


def _report(run: Run, models: Sequence[ModelResult], line: str) -> Report:
    only = _common(run, "test")
    by_name = {model.name: model for model in models}
    predictions: dict[int, dict[str, Any]] = {}
    found_radii = {}
    indices: list[int] = []
    sentences: list[Sentence] = []
    for subject in run.subjects:
        corpus, trained = (
            _corpus(run, subject, "test", only),
            load_probes(subject.probes(run.settings.probe)),
        )
        sentences = corpus.sentences
        indices = choose(sentences, run.examples, run.settings.seed)
        model = by_name[subject.name]
        layers = model.distance_layer, model.depth_layer
        for i in indices:
            shown = predict(corpus, i, trained, layers, run.punct)
            predictions.setdefault(i, {})[subject.name] = shown
        found_radii[subject.name] = radii(corpus, trained, layers[1], run.settings.seed)
    return Report(
        title=TITLE,
        signature=line,
        models=list(models),
        examples=[example(sentences[i], predictions[i], run.punct) for i in indices],
        radii=found_radii,
        table=table(models),
    )
