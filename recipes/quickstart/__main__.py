"""From nothing to a score: make the toy corpus, train on it, translate, and compare models."""

import argparse
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd

import hyptrans
from hyptrans.evaluation import scores
from hyptrans.support import steps
from hyptrans.support.errors import UserError, run_command
from hyptrans.support.extras import require
from hyptrans.support.files import write_whole
from hyptrans.support.steps import Step
from recipes.common import options, translation
from recipes.common.commands import execute, say
from recipes.common.corpus import Corpus
from recipes.common.results import Results, markdown
from recipes.common.scoring import Column
from recipes.common.settings import read_models
from recipes.common.translation import Run
from recipes.probing.tables import METRICS

LANGUAGES = ("en", "qtv")
TREES = {"train": 4000, "dev": 400, "test": 500}
"""Sentences from the toy treebank's English side for probing."""
PROBE, BEAM = "probe", 4
CORPUS = Corpus(
    Path(__file__).resolve().parent,
    "hybonet_plus_tiny,euclidean_prenorm_tiny",
    (Column("bleu", "BLEU", BEAM), Column("chrf", "chrF", BEAM, "chrf")),
    "the toy test set",
    700,
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

    def prepare(run: Run) -> Step:
        corpus = args.out / "toy"
        command = ["hyptrans", "prepare", "toy", "--out", str(corpus)]
        command += ["--train", str(args.sentences)]
        steps.run([translation.step(command, "make_toy", args.out, corpus)], args.out)
        source, target = LANGUAGES
        files = {
            split: (corpus / f"{split}.{source}", corpus / f"{split}.{target}")
            for split in ("train", "valid", "test")
        }
        text = ("--raw-text", "--bpe", "sentencepiece", "--vocab-size", str(args.vocab_size))
        return translation.prepared(run, files, text)

    if args.trainer == "hyptrans":
        for name, default in _OF_RECORDS.items():
            if getattr(args, name) != default:
                flag = f"--{name.replace('_', '-')}"
                raise UserError(
                    f"{flag} goes with --trainer fairseq: hyptrans train records nothing"
                )
        models = read_models(CORPUS.recipe, args.archs.split(","))
        runs = [
            Run(args.out, name, flags, LANGUAGES, args.seed, args.updates)
            for name, flags in models.items()
        ]
        steps.run([prepare(runs[0])], args.out)
        with ThreadPoolExecutor(args.jobs) as pool:
            folders = dict(pool.map(_train, runs))
        print(f"\n{_scores(runs[0], folders)}\n")
        line = _probe(args, args.out / "hyptrans", folders, "--hf")
    else:
        experiment, trained = CORPUS.run(args, LANGUAGES, prepare, table)
        if not trained:
            return
        checkpoints = {name: run.checkpoint for name, run in trained.items()}
        line = _probe(args, args.out, checkpoints, "--checkpoint", "--data", args.out / "data")
        experiment.add(line)
    print(f"{_trees(line)}\n")


def _train(run: Run) -> tuple[str, Path]:
    """Train a model with ``hyptrans train``; return its name and its model folder."""
    folder = run.out / "hyptrans" / run.name
    command = ["hyptrans", "train", str(run.data), "--out", str(folder)]
    for flag, value in run.flags.items():
        if flag not in _OF_FAIRSEQ and value is not None:
            command += [flag, value]
    command += ["--max-update", str(run.updates), "--seed", str(run.seed), "--beam", str(BEAM)]
    execute(command, folder.with_name("logs") / f"train_{run.name}.log")
    return run.name, folder / "model"


def _scores(run: Run, folders: Mapping[str, Path]) -> str:
    """Translate the raw test set with each model folder; return a table of the scores."""
    source, target = run.languages
    sources = scores.read_text(run.references.with_suffix(f".{source}"))
    references = scores.read_text(run.references)
    rows, signatures = [], dict[str, None]()
    for name, folder in folders.items():
        found = hyptrans.load(folder).translate(sources, beam=BEAM)
        write_whole(folder.parent / f"test.{target}", "".join(f"{one}\n" for one in found))
        bleu, chrf = (measure(found, references) for measure in (scores.bleu, scores.chrf))
        signatures |= {f"`{one.signature}`": None for one in (bleu, chrf)}
        measured = {"BLEU": bleu.value, "chrF": chrf.value}
        rows.append({"model": name, "updates": run.updates, "seed": run.seed, **measured})
    lines = markdown(pd.DataFrame(rows), {"updates": ",", "BLEU": ".1f", "chrF": ".1f"})
    return f"{lines}\n\nsacreBLEU {', '.join(signatures)} on {CORPUS.test}"


def _probe(
    args: argparse.Namespace, out: Path, encoders: Mapping[str, Path], flag: str, *how: object
) -> dict[str, Any]:
    """Probe trained encoders, given to ``flag``, for gold trees of the source side."""
    trees = {}
    for split, sentences in TREES.items():
        name = "valid" if split == "dev" else split
        trees[split] = out / "trees" / f"{split}.conllu"
        text = (args.out / "toy" / f"{name}.{LANGUAGES[0]}.conllu").read_text(encoding="utf-8")
        # an empty line ends each sentence
        kept = "\n\n".join(text.split("\n\n")[:sentences]).rstrip("\n")
        write_whole(trees[split], f"{kept}\n\n")
    options = ["--steps", str(args.probe_steps), "--seed", str(args.seed), *map(str, how)]
    probed = translation.probe("probes", out, encoders, trees, options, flag)
    shutil.copyfile(out / "probes" / "report.html", out / "report.html")
    say(f"pictures of the trees: {out / 'report.html'}")
    tests = {model["name"]: model["test"] for model in probed["models"]}
    return {"name": PROBE, "probe": tests, "signature": probed["signature"]}


def table(found: Results) -> str:
    """Write the results as Markdown."""
    scored = CORPUS.table([line for line in found if line["name"] != PROBE])
    probed = [_trees(line) for line in found if line["name"] == PROBE]
    return "\n\n".join([scored, *probed])


def _trees(line: Mapping[str, Any]) -> str:
    frame = pd.DataFrame.from_dict(line["probe"], orient="index", columns=[*METRICS])
    frame = frame.rename(columns=METRICS).rename_axis("encoder").reset_index()
    lines = markdown(frame, dict.fromkeys(METRICS.values(), ".3f"))
    return f"{lines}\n\nTrees of the toy test set, `{line['signature']}`"


if __name__ == "__main__":
    sys.exit(run_command(main))
