"""The whole of it: extract, train, evaluate and compare several encoders, and write a report."""

import argparse
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from hyptrans.support.errors import UserError
from hyptrans.support.files import sha256, take_lock, write_json, write_whole
from hyptrans.support.progress import bar
from probing.commands import extract
from probing.commands.compare import SETS, Fit, Run, Scored, Trees, compare
from probing.commands.evaluate import as_json
from probing.commands.options import (
    add_punct_argument,
    add_training_arguments,
    check_counts,
    settings_of,
    typed_command,
)
from probing.commands.pages import about, report, texts_of, vocabularies
from probing.commands.ranks import add_rank_argument, rank_points
from probing.commands.sources import Source, add_source_arguments, reading_of, sources_of
from probing.commands.subjects import subjects_of
from probing.geometry.states import words_of
from probing.geometry.words import SpaceUse, space_use, word_counts
from probing.probes.file import load_probes
from probing.probes.metrics import kept_words
from probing.probes.probe import check_ranks
from probing.probes.significance import Comparison
from probing.probes.significance import compare as compare_scores
from probing.report import write_report
from probing.report.data import RankPoint, Vocabulary
from probing.report.results import escaped, markdown, notes_on, signature, table
from probing.states.file import States
from probing.text.trees import read_conllu


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``python -m probing run``."""
    add = parser.add_argument
    add_source_arguments(parser, several=True)
    extract.add_model_arguments(parser)
    add("--names", nargs="+", metavar="NAME", help="labels (default: the checkpoints' folders)")
    for name, use in zip(SETS, ("train probes", "choose layers", "report"), strict=True):
        add(f"--{name}", type=Path, required=True, metavar="CONLLU", help=f"trees to {use} on")
    add("--out", type=Path, required=True, metavar="DIR", help="folder to write to")
    add("--no-random", action="store_true", help="leave out encoders with fresh parameters")
    add(
        "--control",
        action="store_true",
        help="also train and score probes on control trees: the same words at shuffled places of "
        "the same tree",
    )
    add_rank_argument(parser)
    add(
        "--seen",
        type=Path,
        action="append",
        default=[],
        metavar="TEXT",
        help="text that the encoders were trained on, plain or gzipped, one for all or one for "
        "each: the share of the test set's words that it lacks is told",
    )
    add(
        "--examples",
        type=int,
        default=6,
        metavar="N",
        help="sentences drawn in the report (default: %(default)s)",
    )
    add(
        "--overwrite",
        action="store_true",
        help="make again what an earlier run in --out made, as after a change of the code",
    )
    add_punct_argument(parser)
    add_training_arguments(parser)
    add(
        "--seeds",
        type=int,
        default=1,
        metavar="N",
        help="trainings of each probe, with seeds from --seed on; figures are then means, with "
        "their standard deviations (default: %(default)s)",
    )


@dataclass(frozen=True)
class Findings:
    """What is told beside the scores.

    Attributes:
        comparisons: of the first encoder with each other model.
        vocabularies: what of the test set each encoder does not know.
        ranks: scores of probes of fewer dimensions.
        spaces: how each encoder uses its space.
    """

    comparisons: dict[str, list[Comparison]]
    vocabularies: dict[str, Vocabulary]
    ranks: list[RankPoint]
    spaces: dict[str, SpaceUse]


def main(args: argparse.Namespace) -> None:
    """Run ``python -m probing run``.

    Raises:
        UserError: an option or what it names cannot be used.
    """
    if args.out.exists() and not args.out.is_dir():
        raise UserError(f"--out {args.out} is a file, a folder is needed: name another")
    check_counts(args, "seeds", "batch_tokens")
    if args.examples < 0:
        raise UserError(f"--examples must be 0 or more, not {args.examples}")
    # the last one, too, is to be in range
    replace(settings_of(args), seed=args.seed + args.seeds - 1)
    check_ranks(args.ranks)
    sources = sources_of(args)
    texts = texts_of(args.seen, len(sources))
    run = _run_of(args, sources)
    # of two runs at once, one would score the probes of the other
    file = args.out / ".lock"
    lock = take_lock(file, args.out)
    try:
        _find_and_tell(run, args, texts)
    finally:
        file.unlink()
        os.close(lock)
        if not any(args.out.iterdir()):
            args.out.rmdir()


def _find_and_tell(run: Run, args: argparse.Namespace, texts: Sequence[Path | None]) -> None:
    """Do everything, and write results and report."""
    scored = compare(run)
    models = [model for model, _ in scored]
    first = run.subjects[0].name
    findings = Findings(
        comparisons=_comparisons(scored, first),
        vocabularies=vocabularies(run, texts),
        ranks=rank_points(run, args.ranks),
        spaces=_spaces(run),
    )
    line = signature(run.settings, run.punct, run.seeds)
    told = notes_on(findings.comparisons, findings.vocabularies, findings.ranks, first)
    told += [f"{escaped(name)}: {use.verdict}" for name, use in findings.spaces.items()]
    text = markdown(models, line, [*_notes(run), *told])
    command = typed_command()
    write_json(
        run.out / "results.json",
        as_json(models, line) | _described(run, findings, command) | _training(run),
    )
    write_whole(run.out / "results.md", text)
    page = report(
        run,
        models,
        args.examples,
        signature=line,
        table=table(models),
        about=about(run, command),
        comparisons=findings.comparisons,
        ranks=findings.ranks,
        vocabularies=findings.vocabularies,
        spaces=findings.spaces,
        notes=_notes(run),
    )
    write_report(run.out / "report.html", page)
    print(f"{text}\n{run.out / 'results.json'}, results.md and report.html are written")


def _run_of(args: argparse.Namespace, sources: Sequence[Source]) -> Run:
    """What the options ask for.

    Raises:
        UserError: a value is out of range, or the trees cannot be read or lack tags.
    """
    settings = settings_of(args)
    subjects = subjects_of(sources, args.names, args.out, random=not args.no_random)
    trees = {name: _trees(getattr(args, name)) for name in SETS}
    for part in (*(["train"] if args.control else []), "dev", "test"):
        for sentence in trees[part].sentences:
            # where tags are missing, that is told before an hour of training
            kept_words(sentence, args.punct)
    return Run(
        out=args.out,
        subjects=subjects,
        trees=trees,
        settings=settings,
        seeds=args.seeds,
        control=args.control,
        punct=args.punct,
        reading=reading_of(args),
        batch_tokens=args.batch_tokens,
        device=args.device,
        overwrite=args.overwrite,
    )


def _trees(path: Path) -> Trees:
    return Trees(path, read_conllu(path), sha256(path))


def _comparisons(found: Sequence[Scored], first: str) -> dict[str, list[Comparison]]:
    """The first encoder against all that is scored on the same trees."""
    (own,) = (scores for model, scores in found if model.name == first)
    return {
        model.name: compare_scores(own, scores)
        for model, scores in found
        if model.name != first and model.role != "control"
    }


def _spaces(run: Run) -> dict[str, SpaceUse]:
    """How the trained encoders use their space, at words of the test set that are one token."""
    counts = word_counts(run.trees["train"].sentences)
    trained = [subject for subject in run.subjects if not subject.random]
    found = {}
    for subject in bar(trained, "spaces", len(trained), " encoders"):
        encoder = subject.source.load(run.reading, random=False, seed=run.settings.seed)
        states = States.open(subject.states("test"))
        words = words_of(states, run.trees["test"].sentences, encoder)
        if len(words):
            found[subject.name] = space_use(words, states.spaces, counts, seed=run.settings.seed)
    return found


def _notes(run: Run) -> list[str]:
    """On the sentences that encoders were compared on."""
    scored, total = len(run.common("test")), len(run.trees["test"].sentences)
    note = f"Scored on {scored} of {total} sentences of the test set."
    if scored < total:
        note += (
            " The others are too long for some encoder or have words that it cannot take; extract "
            "listed them."
        )
    return [note]


def _described(run: Run, findings: Findings, command: str) -> dict[str, Any]:
    """What the scores are of, and what is told beside them."""
    return {
        "command": command,
        "settings": asdict(run.settings),
        "seeds": run.seeds,
        "trees": {n: {"file": str(t.path), "sha256": t.sha256} for n, t in run.trees.items()},
        "notes": _notes(run),
        "comparisons": {n: [asdict(c) for c in rows] for n, rows in findings.comparisons.items()},
        "vocabularies": {n: asdict(shares) for n, shares in findings.vocabularies.items()},
        "ranks": [asdict(point) for point in findings.ranks],
        "spaces": {n: asdict(use) for n, use in findings.spaces.items()},
        "seconds": run.seconds,
    }


def _training(run: Run) -> dict[str, Any]:
    """How the training of every probe went, and the sentences that have no states."""
    training, left_out = {}, {}
    for subject in run.subjects:
        courses = {}
        for seed in range(run.settings.seed, run.settings.seed + run.seeds):
            fit = Fit(replace(run.settings, seed=seed))
            found = load_probes(fit.file(subject, "probes.safetensors")).courses
            courses[str(seed)] = {task: [asdict(c) for c in found[task]] for task in found}
        training[subject.name] = courses
        left_out[subject.name] = {
            part: [asdict(left) for left in States.open(subject.states(part)).left_out]
            for part in SETS
        }
    return {"training": training, "left_out": left_out}
