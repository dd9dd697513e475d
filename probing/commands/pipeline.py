"""Run the steps for states, probes and scores of every encoder, reusing those of earlier runs."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import torch

from hyptrans import __version__
from hyptrans.geometry.space import Space
from hyptrans.support.errors import UserError
from hyptrans.support.files import whole_file
from hyptrans.support.steps import Step
from probing.commands.sources import Subject
from probing.geometry.layers import Layer, measure
from probing.geometry.measures import Estimate
from probing.geometry.words import word_counts, words_of
from probing.probes.control import control_tree
from probing.probes.corpus import Corpus
from probing.probes.evaluation import best_layer, check_choosable, evaluate
from probing.probes.metrics import Scores
from probing.probes.training import Trained, load_probes, train
from probing.report.data import ModelResult, Scored
from probing.report.results import describe
from probing.settings import Punctuation, Settings
from probing.states.encoder import WordEncoder
from probing.states.extract import extract
from probing.states.file import States, about
from probing.text.trees import Sentence


@dataclass(frozen=True)
class Trees:
    """One part of a treebank."""

    path: Path
    sentences: list[Sentence]
    sha256: str


@dataclass(frozen=True)
class Fit:
    """One training of an encoder's probes, on control trees if ``control``."""

    subject: Subject
    settings: Settings
    control: bool = False

    def file(self, kind: str) -> Path:
        """Return the file of its ``probes`` or of their ``figures``."""
        one, control = self.settings, "-control" if self.control else ""
        name = f"{one.probe}-rank{one.rank}{control}-seed{one.seed}.{kind}.pt"
        return self.subject.folder / name


@dataclass
class Run:
    """The encoders, parts of a treebank and options that all steps of a run in ``out`` share.

    ``settings`` has the first of ``seeds`` seeds; ``control`` adds probes of control trees.
    """

    out: Path
    subjects: list[Subject]
    trees: dict[str, Trees]
    settings: Settings
    seeds: int
    control: bool
    punct: Punctuation
    device: str
    _loaded: tuple[Subject, WordEncoder] | None = None

    def encoder(self, subject: Subject) -> WordEncoder:
        """Load an encoder; keep the last one, as several steps in a row need it."""
        if self._loaded is None or self._loaded[0] != subject:
            self._loaded = subject, subject.load(self.settings.seed)
        return self._loaded[1]

    @property
    def trained(self) -> list[Subject]:
        """Return the encoders whose parameters are not fresh."""
        return [subject for subject in self.subjects if not subject.of]

    def fits(self, subject: Subject, control: bool = False) -> list[Fit]:
        """Return a training of an encoder's probes for every seed."""
        seeds = range(self.settings.seed, self.settings.seed + self.seeds)
        return [Fit(subject, replace(self.settings, seed=seed), control) for seed in seeds]

    def common(self, part: str) -> dict[int, Sentence]:
        """Return the sentences that have states of every encoder, by place, for fair scores."""
        kept = [set(States(subject.states(part)).kept) for subject in self.subjects]
        common, trees = set.intersection(*kept), self.trees[part]
        if not common:
            raise UserError(f"no sentence of {trees.path} has states of every encoder")
        return {i: tree for i, tree in enumerate(trees.sentences) if i in common}

    def corpus(
        self,
        subject: Subject,
        part: str,
        only: Mapping[int, Sentence] | None = None,
        *,
        control: bool = False,
    ) -> Corpus:
        """Return the states of a data set with their gold or control trees."""
        path, trees = subject.states(part), self.trees[part].sentences
        if control:
            trees = [control_tree(tree, self.settings.seed, self.punct) for tree in trees]
        return Corpus(States(path), trees, str(path), only)


def steps(run: Run) -> Iterator[Step]:
    """Generate the steps one by one, as the sentences to score depend on the states made before.

    Raises:
        UserError: the development sentences that have states of every encoder choose no layer.
    """

    def step(out: Path, work: partial[None], settings: Mapping[str, object], *more: Path) -> Step:
        return Step(f"{out.parent.name}-{out.stem}", [out, *more], work, settings)

    made_from = {}
    for subject in run.subjects:
        fresh = run.settings.seed if subject.of else None
        origin = subject.made_from() | {"version": __version__, "fresh": fresh}
        for part, trees in run.trees.items():
            made_from[subject.name, part] = settings = origin | {"trees": trees.sha256}
            out = subject.states(part)
            yield step(out, partial(_extract, run, subject, out, trees), settings, about(out))
    only = {part: run.common(part) for part in ("dev", "test")}
    check_choosable(only["dev"].values(), run.punct, run.trees["dev"].path)
    kinds = (False, True) if run.control else (False,)
    for fit in [fit for kind in kinds for one in run.subjects for fit in run.fits(one, kind)]:
        subject, drawn = fit.subject, run.settings.seed if fit.control else None
        settings = {"settings": asdict(fit.settings), "control": drawn}
        settings |= {part: made_from[subject.name, part] for part in ("train", "dev")}
        yield step(fit.file("probes"), partial(_train, run, fit), settings)
        settings = settings | {"test": made_from[subject.name, "test"], "punct": run.punct}
        settings |= {"only": {part: list(common) for part, common in only.items()}}
        yield step(fit.file("figures"), partial(_score, run, fit, only), settings)
    for subject in run.trained:
        settings = {part: made_from[subject.name, part] for part in ("train", "test")}
        settings |= {"seed": run.settings.seed}
        yield step(subject.space, partial(_space, run, subject), settings)


def _extract(run: Run, subject: Subject, out: Path, trees: Trees) -> None:
    encoder = run.encoder(subject)
    extract(encoder, trees.sentences, out, trees=trees.path, device=run.device)


def _train(run: Run, fit: Fit) -> None:
    one, other = (run.corpus(fit.subject, p, control=fit.control) for p in ("train", "dev"))
    name = f"{fit.subject.name}, control trees" if fit.control else fit.subject.name
    train(one, other, fit.settings, name=name, device=run.device).save(fit.file("probes"))


def _score(run: Run, fit: Fit, only: Mapping[str, Mapping[int, Sentence]]) -> None:
    subject = fit.subject
    dev, test = (run.corpus(subject, p, only[p], control=fit.control) for p in ("dev", "test"))
    trained = load_probes(fit.file("probes"))
    result, scores = score(trained, dev, test, punct=run.punct, name=subject.name)
    result = replace(result, role="fresh" if subject.of else "encoder", of=subject.of)
    rows = {name: torch.from_numpy(row) for name, row in vars(scores).items()}
    with whole_file(fit.file("figures")) as file:
        torch.save({"result": asdict(result), "scores": rows}, file)


def _space(run: Run, subject: Subject) -> None:
    """Measure how a trained encoder uses its space, on the test set's single-token words."""
    states, counts = States(subject.states("test")), word_counts(run.trees["train"].sentences)
    words = words_of(states, run.trees["test"].sentences, run.encoder(subject), counts)
    layers = measure(words, seed=run.settings.seed) if len(words.position) else []
    with whole_file(subject.space) as file:
        torch.save(layers, file)


def score(
    trained: Trained, dev_set: Corpus, test_set: Corpus, *, punct: Punctuation, name: str
) -> Scored:
    """Score all layers on the development set, and those chosen there on the test set."""
    probes = trained.distance, trained.depth
    layers = evaluate(dev_set, *probes, punct=punct, name=f"{name}, dev").metrics()
    chosen = best_layer(layers, "distance"), best_layer(layers, "depth")
    needed = sorted(set(chosen))
    test = evaluate(test_set, *probes, punct=punct, layers=needed, name=f"{name}, test")
    scores = test.of(needed.index(chosen[0]), needed.index(chosen[1]))
    result = ModelResult(
        name=name,
        architecture=test_set.states.architecture,
        space=describe(trained.distance.spaces),
        probe=trained.settings.probe,
        layers=layers,
        distance_layer=chosen[0],
        depth_layer=chosen[1],
        test=scores.metrics()[0],
    )
    return result, scores


def scored(fit: Fit) -> Scored:
    """Load the scores of a training, made by one of the steps."""
    found = torch.load(fit.file("figures"), weights_only=True)
    scores = {name: row.numpy() for name, row in found["scores"].items()}
    return ModelResult(**found["result"]), Scores(**scores)


def spaces(run: Run) -> dict[str, list[Layer]]:
    """Load each trained encoder's layer figures; skip encoders without single-token words."""
    with torch.serialization.safe_globals([Layer, Estimate, Space]):
        found = {s.name: torch.load(s.space, weights_only=True) for s in run.trained}
    return {name: layers for name, layers in found.items() if layers}
