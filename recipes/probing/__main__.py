"""Read trees out of the encoders of translation models.

Trains encoders on Tatoeba, English to German; probes them on the gold trees of English EWT, and
with --parsed also on parses of their own corpus, as the HyboNet paper does.
"""

import argparse
import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hyptrans.support import steps
from hyptrans.support.errors import UserError, run_command
from hyptrans.support.extras import require
from hyptrans.support.files import write_json
from hyptrans.support.lines import read_lines
from recipes.common import options, results, translation
from recipes.common.corpus import Corpus
from recipes.common.scoring import Column
from recipes.probing.tables import summary, table
from recipes.tatoeba_en_de.prepare import SPLIT, TABLE, prepared

HERE = Path(__file__).resolve().parent
TREES = {split: f"ud_english_ewt/en_ewt-ud-{split}.conllu" for split in ("train", "dev", "test")}
CORPUS = Corpus(
    HERE,
    "hybonet_plus_iwslt_d64,hybonet_iwslt_d64,han_iwslt_d64,euclidean_prenorm_iwslt_d64",
    (Column("bleu", "BLEU", 5),),
    "the Tatoeba test set",
    updates=4000,
    save_every=500,
)
STEPS, SEEDS = 2000, 3
"""Steps of each probe, and trainings of each, with our settings."""
PAPER_STEPS = 20000
"""Steps of each probe as in the paper."""
COUNTS = {"dev": 1000, "test": 1000, "train": 8000}
"""Sentences to parse in each set."""


def main(argv: Sequence[str] | None = None) -> None:
    """Run every step and write ``results.json`` and the table."""
    parser = CORPUS.parser(__doc__, "--data ~/corpora --write-readme")
    options.add_data(parser, f"{TABLE} and {TREES['train']}.gz, …")
    about = "also probe on parses of the encoders' own corpus, by stanza's models"
    parser.add_argument("--parsed", action="store_true", help=about)
    about = "folder of stanza's models (default: stanza's own)"
    parser.add_argument("--stanza-dir", metavar="DIR", help=about)
    args = parser.parse_args(argv)
    if args.parsed:
        require("stanza", "probing")
    if args.data is None:
        raise UserError(f"--data is needed: a folder with {TABLE} and {TREES['train']}.gz")
    trees = {split: options.file(args.data, name) for split, name in TREES.items()}
    pairs, out, seed = options.file(args.data, TABLE), args.out, ["--seed", str(args.seed)]

    # the record's lines are about encoders only; the README gets the table of probes instead
    write, args.write_readme = args.write_readme, False
    experiment, runs = CORPUS.run(args, ("en", "de"), lambda run: prepared(run, pairs))
    if not runs:
        return
    encoders = {name: run.checkpoint for name, run in runs.items()}

    def probe(name: str, on: Mapping[str, Path], how: Sequence[str]) -> dict[str, Any]:
        how = ["--data", str(out / "data"), *how]
        return summary(translation.probe(name, out, encoders, on, how))

    ours = [*seed, "--seeds", str(SEEDS), "--steps", str(STEPS)]
    found: dict[str, Any] = {
        **{"updates": args.updates, "held_out": True, **results.surroundings()},
        "bleu": {line["model"]: line["bleu"] for line in experiment.lines},
        "probes": {"gold": probe("probes", trees, [*ours, "--control"])},
    }
    if args.parsed:
        parses = _parses(out, args)
        # ten times as long, so one seed each, and no random encoders, which the paper lacks
        paper = [*seed, "--seeds", "1", "--no-random", "--lr", "5e-5"]
        paper += ["--steps", str(PAPER_STEPS), "--evaluate-every", "500"]
        for name, how in (("parsed", ours), ("paper", paper)):
            found["probes"][name] = probe(f"probes_{name}", parses, how)
    print(f"\n{table(found)}\n")
    for folder in (out, *([HERE] if write else [])):
        write_json(folder / "results.json", found)
    if write:
        results.put_into(HERE / "README.md", table(found))


def draw(texts: Mapping[str, Path], counts: Mapping[str, int], seed: int) -> dict[str, list[str]]:
    """Draw distinct sentences for each set.

    Args:
        texts: text of each set, one sentence per line; a sentence in several texts is drawn only
            for the first of their sets in ``counts``.
        counts: number of sentences of each set.
        seed: seed of the draw.

    Raises:
        UserError: a text has fewer sentences.
    """
    rng, seen, drawn = random.Random(seed), set[str](), {}
    for name, count in counts.items():
        found = dict.fromkeys(filter(None, map(str.strip, read_lines(texts[name]))))
        lines = [line for line in found if line not in seen]
        if len(lines) < count:
            raise UserError(
                f"{texts[name]} has {len(lines)} distinct sentences, {count} are needed"
            )
        drawn[name] = rng.sample(lines, count)
        seen |= set(lines)
    return drawn


def _parses(out: Path, args: argparse.Namespace) -> dict[str, Path]:
    """Draw sentences and parse them; return the file of each set."""
    parts = {"train": "train", "dev": "valid", "test": "test"}
    texts = {part: out / "data" / SPLIT / f"{name}.en" for part, name in parts.items()}
    parses = {part: out / "parsed" / f"{part}.conllu" for part in parts}
    for part, lines in draw(texts, COUNTS, args.seed).items():
        text = parses[part].with_suffix(".txt")
        results.write_changed(text, "".join(f"{line}\n" for line in lines))
        made = ["hyptrans", "probe", "annotate", "--text", str(text), "--out", str(parses[part])]
        made += ["--one-sentence-per-line"]
        made += ["--stanza-dir", args.stanza_dir] if args.stanza_dir else []
        step = translation.step(made, f"parse_{part}", out, parses[part], inputs=[text])
        steps.run([step], out)
    return parses


if __name__ == "__main__":
    sys.exit(run_command(main))
