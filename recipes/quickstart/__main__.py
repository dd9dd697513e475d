"""From nothing to a score: make the toy corpus, train on it, translate, and compare models."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import hyptrans
from hyptrans.evaluation import scores
from hyptrans.support import steps, tables
from hyptrans.support.errors import UserError, run_command
from hyptrans.support.extras import require
from hyptrans.support.files import write_whole
from hyptrans.support.steps import Step
from recipes.common import options, results, translation
from recipes.common.commands import execute, say
from recipes.common.corpus import Column, Corpus
from recipes.common.results import Results
from recipes.common.settings import Model, read_models
from recipes.common.translation import Run

SOURCE, TARGET = "en", "qtv"
METRICS = {"uuas": "UUAS", "dspr": "Dspr.", "root": "Root", "nspr": "Nspr."}
TREES = {"train": 4000, "dev": 400, "test": 500}
"""Sentences from the toy treebank's English side for probing."""
PROBE, UPDATES, BEAM = "probe", 700, 4
CORPUS = Corpus(
    Path(__file__).resolve().parent,
    "hybonet_plus_tiny,euclidean_prenorm_tiny",
    (Column("bleu", "BLEU", BEAM), Column("chrf", "chrF", BEAM, "chrf")),
    "the toy test set",
    updates=UPDATES,
)
_OF_FAIRSEQ = ("--optimizer", "--adam-betas", "--criterion", "--total-num-update")
"""Flags that ``hyptrans train`` lacks or applies by default."""
_OF_RECORDS = {"only": None, "list": False, "write_readme": False, "average": 1}
"""Defaults of the options that only trainings with fairseq support."""


def main(argv: Sequence[str] | None = None) -> None:
    """Train, score and probe all unfinished models and print the tables."""
    parser = CORPUS.parser(__doc__, f"--archs {CORPUS.archs} --seed 2")
    parser.set_defaults(jobs=min(2, os.cpu_count() or 1))
    options.add_number(parser, "--sentences", 20000, "sentence pairs to train on")
    options.add_number(parser, "--vocab-size", 1000, "sentencepiece pieces")
    options.add_number(parser, "--probe-steps", 1000, "steps of each probe")
    about = "fairseq-train, or hyptrans train, which needs neither fairseq nor a compiler and "
    about += "whose scores are only printed (default: %(default)s)"
    parser.add_argument("--trainer", choices=("fairseq", "hyptrans"), default="fairseq", help=about)
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

    how = ["--steps", str(args.probe_steps), "--seed", str(args.seed)]
    if args.trainer == "hyptrans":
        given = [name for name, none in _OF_RECORDS.items() if getattr(args, name) != none]
        if given:
            flag = f"--{given[0].replace('_', '-')}"
            raise UserError(f"{flag} goes with --trainer fairseq: hyptrans train records nothing")
        models = read_models(CORPUS.recipe, args.archs.split(","))
        run = Run(args.out, SOURCE, TARGET, args.seed, args.updates or UPDATES, args.threads)
        steps.run([prepare(run)], args.out)
        out = args.out / "hyptrans"
        folders = _train(run, models, out, args.jobs)
        print(f"\n{_scores(run, folders)}\n")
        line = _probe("--hf", folders, out, corpus, how)
    else:
        out = args.out
        record, runs = CORPUS.run(args, (SOURCE, TARGET), prepare, table)
        if not runs:
            return
        how += ["--data", str(next(iter(runs.values())).data)]
        checkpoints = {name: run.checkpoint(name) for name, run in runs.items()}
        line = _probe("--checkpoint", checkpoints, out, corpus, how)
        record.add(line)
    print(f"{_trees(line)}\n")
    say(f"pictures of the trees: {out / 'report.html'}")


def _train(run: Run, models: Sequence[Model], out: Path, jobs: int) -> dict[str, Path]:
    """Train all unfinished models with ``hyptrans train``; return the model folders by name."""

    def one(model: Model) -> Path:
        command = ["hyptrans", "train", str(run.data), "--out", str(out / model.name)]
        for flag, value in model.flags.items():
            if flag not in _OF_FAIRSEQ and value is not None:
                command += [flag, value]
        command += ["--max-update", str(run.updates), "--seed", str(run.seed)]
        log = out / "logs" / f"train_{model.name}.log"
        execute([*command, "--beam", str(BEAM)], log, threads=run.threads)
        return out / model.name / "model"

    with ThreadPoolExecutor(jobs) as pool:
        return dict(zip((model.name for model in models), pool.map(one, models), strict=True))


def _scores(run: Run, folders: Mapping[str, Path]) -> str:
    """Translate the raw test set with each model folder; return a table of the scores."""
    sources = scores.read_text(run.data / "raw" / f"test.{run.source}")
    references = scores.read_text(run.references())
    rows, signatures = [], {}
    for name, folder in folders.items():
        found = hyptrans.load(folder).translate(sources, beam=BEAM)
        write_whole(folder.parent / f"test.{run.target}", "".join(f"{one}\n" for one in found))
        scored = [measure(found, references) for measure in (scores.bleu, scores.chrf)]
        signatures = dict.fromkeys(f"`{one.signature}`" for one in scored)
        rows.append([name, f"{run.updates:,}", run.seed, *(f"{one.value:.1f}" for one in scored)])
    lines = tables.markdown(["model", "updates", "seed", "BLEU", "chrF"], rows)
    return f"{lines}\n\nsacreBLEU {', '.join(signatures)} on {CORPUS.test}"


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
