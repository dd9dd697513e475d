"""From nothing to a score: make the toy corpus, train on it, translate, and compare models."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hyptrans.support import tables
from hyptrans.support.errors import UserError, run_command
from hyptrans.support.extras import require
from hyptrans.support.files import write_whole
from recipes.common import experiment, options, scoring, translation
from recipes.common.experiment import Column, Experiment
from recipes.common.runner import Runner
from recipes.common.steps import Step
from recipes.common.translation import Run

HERE = Path(__file__).resolve().parent
MODELS = "hybonet_plus_tiny,euclidean_prenorm_tiny"
SOURCE, TARGET = "en", "qtv"
VOCABULARY = 1500
SEARCH = (4, "test")
COLUMNS = (Column("bleu", "BLEU", SEARCH[0]), Column("chrf", "chrF", SEARCH[0], "chrf"))
METRICS = {"uuas": "UUAS", "dspr": "Dspr.", "root": "Root", "nspr": "Nspr."}
TREES = {"train": 4000, "dev": 400, "test": 500}
"""Sentences of the toy treebank's English side that probes see."""


def main(argv: Sequence[str] | None = None) -> None:
    """Run every step and write ``results.json`` and the table."""
    example = f"--archs {MODELS} --seed 2"
    parser = experiment.make_parser(HERE, __doc__, example, archs=MODELS, updates=700)
    for name, default, about in (
        ("sentences", 20000, "sentence pairs to train on"),
        ("vocab-size", VOCABULARY, "sentencepiece pieces"),
        ("probe-steps", 1000, "steps of each probe, 0: none"),
    ):
        about += " (default: %(default)s)"
        parser.add_argument(f"--{name}", type=int, default=default, metavar="N", help=about)
    about = "skip the row of the untrained first model"
    parser.add_argument("--no-untrained", action="store_true", help=about)
    args = parser.parse_args(argv)
    options.check_positive(args, "updates", "sentences", "vocab_size", "jobs")
    if args.probe_steps < 0:
        raise UserError(f"--probe-steps must be at least 0, got {args.probe_steps}")
    if args.probe_steps > 0:
        # now, and not after the trainings
        require("conllu", "probing")
    made = Experiment(HERE, args, (SOURCE, TARGET))
    run = made.run
    _prepare(made.runner, run, args)
    first = [] if args.no_untrained else made.models[:1]
    untrained = [translation.chain(run, model, [SEARCH], untrained=True) for model in first]
    found = made.measure(COLUMNS, validated=False, beside=untrained)
    for model in first:
        output = run.output(f"untrained_{model.name}", SEARCH)
        found["models"][f"{model.name}, untrained"] = {
            "parameters": found["models"][model.name]["parameters"],
            "bleu": scoring.score("bleu", output, run.references()).value,
        }
    if args.probe_steps > 0:
        found |= _probe(made, args.probe_steps)
    made.finish(found, table)
    if args.probe_steps > 0:
        made.runner.say(f"pictures of the trees: {run.out / 'report.html'}")


def _prepare(runner: Runner, run: Run, args: argparse.Namespace) -> None:
    corpus = run.out / "toy"
    command = ["python", translation.script("make_toy.py"), "--out", str(corpus)]
    toy = Step("make_toy", [*command, "--train", str(args.sentences)], [corpus])
    runner.run(toy)
    files = {
        split: (corpus / f"{split}.{SOURCE}", corpus / f"{split}.{TARGET}")
        for split in ("train", "valid", "test")
    }
    runner.run(translation.prepare(run, files, args.vocab_size, after=[toy.name]))


def _probe(made: Experiment, steps: int) -> dict[str, Any]:
    """Read the gold trees of the source side out of the trained encoders."""
    run, trees = made.run, {}
    for split, sentences in TREES.items():
        name = "valid" if split == "dev" else split
        trees[split] = run.out / "trees" / f"{split}.conllu"
        _first_trees(run.out / "toy" / f"{name}.{SOURCE}.conllu", sentences, trees[split])
    encoders = {model.name: run.checkpoint(model.name) for model in made.models}
    step = translation.probe(
        "probe",
        encoders,
        run.data,
        trees,
        run.out / "probes",
        ["--steps", str(steps), "--seed", str(run.seed)],
        after=[run.made_by(name) for name in encoders],
    )
    made.runner.run(step)
    shutil.copyfile(run.out / "probes" / "report.html", run.out / "report.html")
    probed = json.loads((run.out / "probes" / "results.json").read_text(encoding="utf-8"))
    return {
        "probe": {model["name"]: model["test"] for model in probed["models"]},
        "probe_signature": probed["signature"],
        "probe_seconds": made.runner.seconds[step.name],
    }


def _first_trees(path: Path, sentences: int, out: Path) -> None:
    """Copy the first sentences of a CoNLL-U file, which end with an empty line each."""
    trees = path.read_text(encoding="utf-8").split("\n\n")[:sentences]
    out.parent.mkdir(exist_ok=True)
    write_whole(out, "\n\n".join(trees).rstrip("\n") + "\n\n")


def table(found: Mapping[str, Any]) -> str:
    """The results as Markdown."""
    shown = experiment.table(found, COLUMNS, "the toy test set")
    if "probe" not in found:
        return shown
    rows = [
        [name, *(None if scores[key] is None else f"{scores[key]:.3f}" for key in METRICS)]
        for name, scores in found["probe"].items()
    ]
    lines = tables.markdown(["encoder", *METRICS.values()], rows)
    return f"{shown}\n\n{lines}\n\nTrees of the toy test set, `{found['probe_signature']}`"


if __name__ == "__main__":
    sys.exit(run_command(main, stopped=options.STOPPED))
