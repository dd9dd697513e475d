"""Read trees out of the encoders of translation models.

Trains encoders on Tatoeba, English to German; probes them on the gold trees of English EWT, and
with --parsed also on parses of their own corpus, as the HyboNet paper does.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hyptrans.support import steps
from hyptrans.support.errors import UserError, run_command
from hyptrans.support.extras import require
from hyptrans.support.files import write_json
from hyptrans.support.steps import Step
from recipes.common import options, results, translation
from recipes.common.corpus import Column, Corpus
from recipes.common.translation import Run
from recipes.probing import sentences
from recipes.probing.tables import summary, table
from recipes.tatoeba_en_de.prepare import SPLIT, TABLE, command

HERE = Path(__file__).resolve().parent
TREES = {split: f"ud_english_ewt/en_ewt-ud-{split}.conllu.gz" for split in ("train", "dev", "test")}
CORPUS = Corpus(
    HERE,
    "hybonet_plus_iwslt_d64,hybonet_iwslt_d64,han_iwslt_d64,euclidean_prenorm_iwslt_d64",
    (Column("bleu", "BLEU", 5),),
    "the Tatoeba test set",
    updates=4000,
    of_run={"save_every": 500},
)
COUNTS = (
    ("steps", 2000, "steps of each probe"),
    ("seeds", 3, "trainings of each with our settings"),
    ("sentences", 10000, "sentences to parse"),
    ("held-out", 1000, "of those, in dev and in test"),
    ("paper-steps", 20000, "of each as in the paper"),
)
"""Numeric options with their defaults and help."""


def main(argv: Sequence[str] | None = None) -> None:
    """Run every step and write ``results.json`` and the table."""
    parser = CORPUS.parser(__doc__, "--data ~/corpora --write-readme")
    options.add_data(parser, f"{TABLE} and {TREES['train']}, …")
    about = "probe on parses of their own corpus too, by stanza's models"
    parser.add_argument("--parsed", action="store_true", help=about)
    about = "folder of stanza's models (default: stanza's own)"
    parser.add_argument("--stanza-dir", metavar="DIR", help=about)
    for name, default, about in COUNTS:
        options.add_number(parser, f"--{name}", default, about)
    args = parser.parse_args(argv)
    if args.parsed:
        require("stanza", "probing")
    trees = {split: _file(args.data, name) for split, name in TREES.items()}
    pairs, out = _file(args.data, TABLE), args.out

    def prepare(run: Run) -> Step:
        made = command(pairs, run.data)
        return translation.step(made, "prepare", out, [run.data], inputs=[pairs], resumes=True)

    # the record's lines are about encoders only; the README gets the table of probes instead
    write, args.write_readme = args.write_readme, False
    record, runs = CORPUS.run(args, ("en", "de"), prepare)
    if not runs:
        return
    first = next(iter(runs.values()))
    encoders = {name: run.checkpoint(name) for name, run in runs.items()}
    texts = {
        part: first.data / SPLIT / f"{name}.en"
        for part, name in (("train", "train"), ("dev", "valid"), ("test", "test"))
    }

    def probe(name: str, on: dict[str, Path], how: Sequence[str]) -> dict[str, Any]:
        folder, inputs = out / name, [*encoders.values(), *on.values()]
        made = ["hyptrans", "probe", "run", "--data", str(first.data), "--names", *encoders]
        made += [word for path in encoders.values() for word in ("--checkpoint", str(path))]
        made += [word for part, path in on.items() for word in (f"--{part}", str(path))]
        made += [*how, "--out", str(folder)]
        steps.run([translation.step(made, name, out, [folder], inputs=inputs)], out)
        return summary(results.read_json(folder / "results.json"))

    ours = ["--seed", str(args.seed), "--seeds", str(args.seeds), "--steps", str(args.steps)]
    found: dict[str, Any] = {
        **{"updates": args.updates, "held_out": True, **results.surroundings()},
        "bleu": {line["model"]: line["bleu"] for line in record.lines},
        "probes": {"gold": probe("probes", trees, [*ours, "--control"])},
    }
    if args.parsed:
        parses = _parses(out, texts, args)
        # ten times as long, so one seed each, and no random encoders, which the paper lacks
        paper = ["--seed", str(args.seed), "--seeds", "1", "--no-random", "--lr", "5e-5"]
        paper += ["--steps", str(args.paper_steps), "--evaluate-every", "500"]
        for name, how in (("parsed", ours), ("paper", paper)):
            found["probes"][name] = probe(f"probes_{name}", parses, how)
    print(f"\n{table(found)}\n")
    for folder in (out, *([HERE] if write else [])):
        write_json(folder / "results.json", found)
    if write:
        results.put_into(HERE / "README.md", table(found))


def _file(data: Path | None, name: str) -> Path:
    """Return the path of a file in the data folder; raise ``UserError`` if it is missing."""
    if data is None:
        raise UserError(f"--data is needed: a folder with {TABLE} and {TREES['train']}")
    if not (data / name).is_file():
        raise UserError(f"--data: {data / name} is missing")
    return data / name


def _parses(out: Path, texts: Mapping[str, Path], args: argparse.Namespace) -> dict[str, Path]:
    """Draw sentences and parse them; return the file of each set."""
    parses = {part: out / "parsed" / f"{part}.conllu" for part in texts}
    counts = {"sentences": args.sentences, "held_out": args.held_out, "seed": args.seed}
    for part, lines in sentences.draw(texts, **counts).items():
        text = parses[part].with_suffix(".txt")
        results.write_changed(text, "".join(f"{line}\n" for line in lines))
        made = ["hyptrans", "probe", "annotate", "--text", str(text), "--out", str(parses[part])]
        made += ["--one-sentence-per-line"]
        made += ["--stanza-dir", args.stanza_dir] if args.stanza_dir else []
        outputs, inputs = [parses[part]], [text]
        steps.run([translation.step(made, f"parse_{part}", out, outputs, inputs=inputs)], out)
    return parses


if __name__ == "__main__":
    sys.exit(run_command(main, stopped=options.STOPPED))
