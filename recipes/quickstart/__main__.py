"""From nothing to a score: make the toy corpus, train on it, translate, and compare models."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hyptrans.support import steps, tables
from hyptrans.support.errors import run_command
from hyptrans.support.extras import require
from hyptrans.support.files import write_whole
from hyptrans.support.steps import Step
from recipes.common import options, results, translation
from recipes.common.commands import say
from recipes.common.corpus import Column, Corpus
from recipes.common.results import Results
from recipes.common.settings import read_models
from recipes.common.translation import Run
from recipes.quickstart import alone

SOURCE, TARGET = "en", "qtv"
METRICS = {"uuas": "UUAS", "dspr": "Dspr.", "root": "Root", "nspr": "Nspr."}
TREES = {"train": 4000, "dev": 400, "test": 500}
"""Sentences from the toy treebank's English side for probing."""
PROBE, UPDATES = "probe", 700
CORPUS = Corpus(
    Path(__file__).resolve().parent,
    "hybonet_plus_tiny,euclidean_prenorm_tiny",
    (Column("bleu", "BLEU", 4), Column("chrf", "chrF", 4, "chrf")),
    "the toy test set",
    updates=UPDATES,
)


def main(argv: Sequence[str] | None = None) -> None:
    """Train, score and probe all unfinished models and print the tables."""
    parser = CORPUS.parser(__doc__, f"--archs {CORPUS.archs} --seed 2")
    parser.set_defaults(jobs=min(2, os.cpu_count() or 1))
    options.add_number(parser, "--sentences", 20000, "sentence pairs to train on")
    options.add_number(parser, "--vocab-size", 1000, "sentencepiece pieces")
    options.add_number(parser, "--probe-steps", 1000, "steps of each probe")
    alone.add_trainer(parser)
    args = parser.parse_args(argv)
    # fail now, not after the trainings
    require("conllu", "probing")
    corpus = args.out / "toy"

    def prepare(run: Run) -> Step:
        command = ["hyptrans", "prepare", "toy", "--out", str(corpus)]
        command += ["--train", str(args.sentences)]
        steps.run([translation.step(command, "make_toy", args.out, [corpus])], args.out)
        files = {
            split: (corpus / f"{split}.{SOURCE}", corpus / f"{split}.{TARGET}")
            for split in ("train", "valid", "test")
        }
        command = translation.prepare(run, files, args.vocab_size)
        inputs = [path for pair in files.values() for path in pair]
        return translation.step(
            command, "prepare", args.out, [run.data], inputs=inputs, resumes=True
        )

    out, how = args.out, ["--steps", str(args.probe_steps), "--seed", str(args.seed)]
    if args.trainer == "hyptrans":
        alone.check(args)
        models = read_models(CORPUS.recipe, args.archs.split(","))
        run = Run(out, SOURCE, TARGET, args.seed, args.updates or UPDATES, args.threads)
        steps.run([prepare(run)], out)
        folders = alone.train(run, models, args.jobs)
        print(f"\n{alone.table(run, folders)}\n")
        out /= alone.FOLDER
        line = _probe("--hf", folders, out, corpus, how)
    else:
        record, runs = CORPUS.run(args, (SOURCE, TARGET), prepare, table)
        if not runs:
            return
        how += ["--data", str(next(iter(runs.values())).data)]
        checkpoints = {name: run.checkpoint(name) for name, run in runs.items()}
        line = _probe("--checkpoint", checkpoints, out, corpus, how)
        record.add(line)
    print(f"{_trees(line)}\n")
    say(f"pictures of the trees: {out / 'report.html'}")


def _probe(
    flag: str, encoders: Mapping[str, Path], out: Path, corpus: Path, how: Sequence[str]
) -> dict[str, Any]:
    """Probe trained encoders, given to ``flag``, for gold trees of the source side."""
    trees = {}
    for split, sentences in TREES.items():
        name = "valid" if split == "dev" else split
        trees[split] = out / "trees" / f"{split}.conllu"
        text = (corpus / f"{name}.{SOURCE}.conllu").read_text(encoding="utf-8")
        # an empty line ends each sentence
        kept = "\n\n".join(text.split("\n\n")[:sentences]).rstrip("\n")
        write_whole(trees[split], f"{kept}\n\n")
    command = ["hyptrans", "probe", "run", "--names", *encoders]
    command += [word for path in encoders.values() for word in (flag, str(path))]
    command += [word for name, path in trees.items() for word in (f"--{name}", str(path))]
    command += [*how, "--out", str(out / "probes")]
    outputs, inputs = [out / "probes"], [*encoders.values()]
    steps.run([translation.step(command, PROBE, out, outputs, inputs=inputs)], out)
    shutil.copyfile(out / "probes" / "report.html", out / "report.html")
    probed = results.read_json(out / "probes" / "results.json")
    tests = {model["name"]: model["test"] for model in probed["models"]}
    return {"name": PROBE, "probe": tests, "signature": probed["signature"]}


def table(found: Results | Mapping[str, Any]) -> str:
    """Write the results as Markdown; ``found`` holds lines or is a record of version 0.2.0."""
    if isinstance(found, Mapping):
        of_all = {key: found[key] for key in ("seed", "versions", "commit")}
        signed = {f"{key}_signature": one for key, one in found["signatures"].items()}
        rows = found["models"].items()
        lines = [{"name": name, "model": name, **row, **of_all, **signed} for name, row in rows]
        trees = {"probe": found["probe"], "signature": found["probe_signature"]}
        found = [*(x for x in lines if "updates" in x), {"name": PROBE, **trees}]
    scored = CORPUS.table([line for line in found if line["name"] != PROBE])
    probed = [_trees(line) for line in found if line["name"] == PROBE]
    return "\n\n".join([scored, *probed])


def _trees(line: Mapping[str, Any]) -> str:
    rows = [
        [name, *(None if scores[key] is None else f"{scores[key]:.3f}" for key in METRICS)]
        for name, scores in line["probe"].items()
    ]
    lines = tables.markdown(["encoder", *METRICS.values()], rows)
    return f"{lines}\n\nTrees of the toy test set, `{line['signature']}`"


if __name__ == "__main__":
    sys.exit(run_command(main, stopped=options.STOPPED))
