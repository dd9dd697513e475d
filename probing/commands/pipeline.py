"""The stages of a run: states, probes and scores of every encoder, kept from earlier runs."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from hyptrans import __version__
from hyptrans.support.errors import UserError
from hyptrans.support.files import write_whole
from hyptrans.support.records import Record, digest
from hyptrans.support.stored import build, read_json
from probing.commands import extract
from probing.commands.evaluate import of_baselines, read_scored, save_scored, score
from probing.commands.sources import Subject
from probing.geometry.layers import Layer, SpaceUse, space_use, word_counts
from probing.geometry.words import words_of
from probing.probes import baselines
from probing.probes.control import control_tree
from probing.probes.corpus import Corpus
from probing.probes.evaluation import SELECTED_BY
from probing.probes.file import FORMAT as PROBES
from probing.probes.file import load_probes, save_probes
from probing.probes.metrics import Scores, mean_scores
from probing.probes.training import train
from probing.report.data import ModelResult, RankPoint, Role, Selectivity
from probing.report.results import over_seeds, signature
from probing.settings import KINDS, Punctuation, Settings
from probing.states.encoder import WordEncoder
from probing.states.extract import extract as extract_states
from probing.states.file import FORMAT, States
from probing.text.trees import Sentence

FIGURES = "hyptrans figures 2"
"""Of a file of scores; the first ones had no edges by length."""
RECORD = ".inputs.json"
"""Ending of what tells what a file was made from."""
Scored = tuple[ModelResult, Scores]
"""A result, and what it is made of by sentence."""


@dataclass(frozen=True)
class Trees:
    """A treebank's part."""

    path: Path
    sentences: list[Sentence]
    sha256: str


@dataclass
class Run:
    """What all stages of a run share."""

    subjects: list[Subject]
    trees: dict[str, Trees]
    settings: Settings
    seeds: int
    punct: Punctuation
    batch_tokens: int
    device: str
    overwrite: bool = False
    """Make again what an earlier run made."""
    seconds: dict[str, dict[str, float]] = field(default_factory=dict)
    keys: dict[str, dict[str, str]] = field(default_factory=dict)
    """What the states of each encoder are, by data set."""

    @property
    def trained(self) -> list[Subject]:
        """The encoders whose parameters are not fresh."""
        return [subject for subject in self.subjects if not subject.random]

    @property
    def each_seed(self) -> range:
        """The seeds of the probes."""
        return range(self.settings.seed, self.settings.seed + self.seeds)

    def common(self, part: str) -> set[int]:
        """Places of the sentences that every encoder has states of, so that all are scored alike.

        Raises:
            UserError: there is none.
        """
        kept = [set(States.open(subject.states(part)).kept) for subject in self.subjects]
        common = set.intersection(*kept)
        if not common:
            raise UserError(f"no sentence of {self.trees[part].path} has states of every encoder")
        return common

    def scored_trees(self) -> list[Sentence]:
        """Gold trees of the test set's sentences that all encoders are scored on."""
        only = self.common("test")
        return [tree for i, tree in enumerate(self.trees["test"].sentences) if i in only]

    def corpus(self, subject: Subject, part: str, only: set[int] | None = None) -> Corpus:
        """States of a data set beside their gold trees."""
        path = subject.states(part)
        return Corpus(States.open(path), self.trees[part].sentences, str(path), only)


@dataclass(frozen=True)
class Fit:
    """One training of probes of an encoder.

    Attributes:
        settings: with its seed.
        control: on control trees.
    """

    settings: Settings
    control: bool = False

    def file(self, subject: Subject, ending: str) -> Path:
        """Where its probes or figures are."""
        settings = self.settings
        parts = [settings.probe, f"rank{settings.rank}", *(["control"] if self.control else [])]
        return subject.folder / f"{'-'.join(parts)}-seed{settings.seed}.{ending}"

    def corpus(self, run: Run, subject: Subject, part: str, only: set[int] | None = None) -> Corpus:
        """What it learns from or is scored on."""
        whole = run.corpus(subject, part, only)
        if not self.control:
            return whole
        trees = run.trees[part].sentences
        sentences = [control_tree(sentence, run.settings.seed, run.punct) for sentence in trees]
        return Corpus(whole.states, sentences, whole.name, only)


def stages(run: Run) -> list[Scored]:
    """Baselines and all encoders."""
    if run.overwrite:
        # all at once, so that what goes on from where this one was stopped keeps nothing older
        for subject in run.subjects:
            for record in subject.folder.glob(f"*{RECORD}"):
                record.unlink()
    for subject in run.subjects:
        run.keys[subject.name] = _extract(run, subject)
    found = of_baselines(run.scored_trees(), run.punct)
    for subject in run.subjects:
        found.append(_over_seeds(run, subject, run.settings))
    return found


def rank_points(run: Run, ranks: Sequence[int]) -> list[RankPoint]:
    """Probes of all kinds, of spaces of some dimensions, for every trained encoder."""
    found = []
    for subject in run.trained:
        for kind in KINDS:
            for dimensions in sorted(set(ranks)):
                result, _ = _over_seeds(run, subject, _of_size(run, kind, dimensions))
                point = RankPoint(subject.name, kind, dimensions, result.test, result.spread)
                found.append(point)
    return found


def selectivities(run: Run, ranks: Sequence[int]) -> list[Selectivity]:
    """How much better probes of the run's kind learn gold trees than control trees.

    For a chain of neighbours and for every encoder, of fresh parameters too; each probe on the
    layer that is best for it on the development set.
    """
    metric, sizes, gold = SELECTED_BY["distance"], sorted(set(ranks)), run.scored_trees()
    made = [control_tree(sentence, run.settings.seed, run.punct) for sentence in gold]
    chain = [baselines.score(baselines.CHAIN, trees, run.punct) for trees in (gold, made)]
    shares = [scores.parts(metric).tolist() for scores in chain]
    found = [Selectivity(baselines.CHAIN, size, *shares) for size in sizes]
    for subject in run.subjects:
        for size in sizes:
            settings = _of_size(run, run.settings.probe, size)
            pair = [
                [result.test[metric] for result, _ in _each_seed(run, subject, settings, control)]
                for control in (False, True)
            ]
            found.append(Selectivity(subject.name, size, *pair))
    return found


def _of_size(run: Run, kind: str, dimensions: int) -> Settings:
    # hyperbolic points have one coordinate more, their time
    return replace(run.settings, probe=kind, rank=dimensions + (kind != "euclidean"))


def _over_seeds(run: Run, subject: Subject, settings: Settings) -> Scored:
    """Probes of every seed, as one result."""
    results, scores = zip(*_each_seed(run, subject, settings), strict=True)
    return over_seeds(results), mean_scores(scores)


def _each_seed(
    run: Run, subject: Subject, settings: Settings, control: bool = False
) -> list[Scored]:
    return [
        scored(run, subject, Fit(replace(settings, seed=seed), control)) for seed in run.each_seed
    ]


def scored(run: Run, subject: Subject, wanted: Fit) -> Scored:
    """Train and score the probes of one encoder with one seed."""
    keys, settings = run.keys[subject.name], wanted.settings
    inputs: dict[str, Any] = {
        "version": __version__,
        "format": PROBES,
        "states": {part: keys[part] for part in ("train", "dev")},
        "settings": asdict(settings),
        "control": ["word types", run.settings.seed, run.punct] if wanted.control else None,
    }
    probes = wanted.file(subject, "probes.safetensors")
    name = f"{subject.name}, control trees" if wanted.control else subject.name

    def make_probes() -> None:
        train_set, dev_set = (wanted.corpus(run, subject, part) for part in ("train", "dev"))
        save_probes(probes, train(train_set, dev_set, settings, name=name, device=run.device))

    learned = _timed(run, subject, "train", probes, inputs, make_probes)
    role: Role = "fresh" if subject.random else "encoder"
    only = {part: run.common(part) for part in ("dev", "test")}
    inputs |= {"probes": learned, "test": keys["test"]}
    inputs |= {"punct": run.punct, "name": name, "of": subject.of, "figures": FIGURES}
    inputs |= {"only": digest({part: sorted(places) for part, places in only.items()})}
    figures = wanted.file(subject, "figures.json")

    def make_figures() -> None:
        dev_set, test_set = (wanted.corpus(run, subject, p, only[p]) for p in ("dev", "test"))
        result = score(
            load_probes(probes),
            dev_set,
            test_set,
            name=name,
            architecture=States.open(subject.states("test")).architecture,
            punct=run.punct,
            role=role,
            of=subject.of,
        )
        save_scored(figures, *result, signature(settings, run.punct))

    _timed(run, subject, "evaluate", figures, inputs, make_figures)
    return read_scored(figures)


def _extract(run: Run, subject: Subject) -> dict[str, str]:
    """Make the three files of states; returns the id of each."""
    keys, encoders = {}, list[WordEncoder]()
    seed = run.settings.seed
    inputs = {
        "version": __version__,
        "format": FORMAT,
        "source": subject.source.made_from(),
        "random": subject.random,
        "seed": seed if subject.random else 0,
    }

    def encoder() -> WordEncoder:
        """Loaded once, and only where something is missing."""
        if not encoders:
            encoders.append(subject.source.load(random=subject.random, seed=seed))
        return encoders[0]

    for part, trees in run.trees.items():
        own = inputs | {"trees": trees.sha256}
        out = subject.states(part)

        def make(out: Path = out, trees: Trees = trees) -> None:
            states = extract_states(
                encoder(),
                trees.sentences,
                out,
                trees=trees.path,
                batch_tokens=run.batch_tokens,
                device=run.device,
            )
            print(extract.summary(states), file=sys.stderr)

        keys[part] = _timed(run, subject, "extract", out, own, make)
    return keys


def space_uses(run: Run) -> dict[str, SpaceUse]:
    """How the trained encoders use their space, at words of the test set that are one token."""
    found = {}
    for subject in run.trained:
        file = subject.folder / "space.json"
        inputs = {
            "version": __version__,
            "states": run.keys[subject.name]["test"],
            "trees": {part: run.trees[part].sha256 for part in ("train", "test")},
            "seed": run.settings.seed,
            "figures": [one.name for one in fields(Layer)],
        }

        def make(subject: Subject = subject, file: Path = file) -> None:
            encoder = subject.source.load(random=False, seed=run.settings.seed)
            states = States.open(subject.states("test"))
            words = words_of(states, run.trees["test"].sentences, encoder)
            counts = word_counts(run.trees["train"].sentences)
            use = SpaceUse([], "no word of the test set is one token")
            if len(words):
                use = space_use(words, states.spaces, counts, seed=run.settings.seed)
            # with its NaN, which json reads again
            write_whole(file, json.dumps(asdict(use)))

        _timed(run, subject, "space", file, inputs, make)
        use = build(SpaceUse, read_json(file.read_text(encoding="utf-8")))
        if use.layers:
            found[subject.name] = use
    return found


def _timed(
    run: Run,
    subject: Subject,
    stage: str,
    path: Path,
    inputs: Mapping[str, Any],
    make: Callable[[], None],
) -> str:
    """Make a file unless an earlier run made it from the same inputs, which stand beside it.

    Returns:
        What the file holds, by which later stages know it: where it is made anew and is another
        one, so are they.
    """
    record = Record(path.with_name(f"{path.name}{RECORD}"), inputs, [path])
    done = record.earlier()
    if done:
        print(f"{path}: from an earlier run", file=sys.stderr)
    else:
        done = record.make(make)
    spent = run.seconds.setdefault(subject.name, {})
    # version 0.2.0 noted none at first
    spent[stage] = round(spent.get(stage, 0.0) + (done.seconds or 0.0), 1)
    return done.id
