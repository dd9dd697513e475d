"""Train encoders on Tatoeba, English to German, and read the trees of English EWT out of them."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# a recipe is run as a file, and the recipes are not installed
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from hyptrans.support.errors import UserError, run_command
from recipes.common import experiment, options, translation
from recipes.common.commands import Step
from recipes.common.translation import ROOT

HERE = Path(__file__).resolve().parent
MODELS = "hybonet_iwslt_d64,han_iwslt_d64,euclidean_iwslt_d64"
TREES = {split: f"ud_english_ewt/en_ewt-ud-{split}.conllu.gz" for split in ("train", "dev", "test")}
TABLE = "tatoeba_en_de/deu-eng.zip"
BEAM = 5


def _arguments() -> argparse.Namespace:
    example = "--data ~/corpora --write-readme"
    parser = options.make_parser(HERE, __doc__, example, archs=MODELS, updates=2000)
    options.add_data(parser, f"{TABLE} and {TREES['train']}, …")
    parser.add_argument("--steps", type=int, default=2000, metavar="N", help="steps of each probe")
    return parser.parse_args()


def main() -> None:
    """Run every step and write ``results.json`` and the table."""
    args = _arguments()
    options.check_positive(args, "updates", "steps", "jobs")
    pairs = _file(args.data, TABLE)
    trees = {split: _file(args.data, name) for split, name in TREES.items()}
    models, run, runner = experiment.start(HERE, args, source="en", target="de")
    prepared = _prepare(pairs, run.data)
    runner.run(prepared)
    chains = {
        model.name: translation.train_and_translate(run, model, prepared, beams=[BEAM])
        for model in models
    }
    runner.chains(list(chains.values()), jobs=args.jobs)
    trained = [chain[0] for chain in chains.values()]
    probed = translation.probe(run, models, trees, trained, args.steps)
    runner.run(probed)
    probes = run.out / "probes"
    found = {
        "bleu": {name: translation.bleu(run, chain[-1]).value for name, chain in chains.items()},
        "probes": json.loads((probes / "results.json").read_text(encoding="utf-8")),
        "table": (probes / "results.md").read_text(encoding="utf-8"),
        "train_seconds": experiment.train_seconds(runner, models),
        "probe_seconds": runner.seconds[probed.name],
        **experiment.conditions(run, runner),
    }
    experiment.finish(HERE, args, runner, found, table(found))


def _file(data: Path | None, name: str) -> Path:
    """A file of the data folder.

    Raises:
        UserError: it is missing, or no folder is named.
    """
    if data is None:
        raise UserError(f"--data is needed: a folder with {TABLE} and {TREES['train']}")
    if not (data / name).is_file():
        raise UserError(f"--data: {data / name} is missing")
    return data / name


def _prepare(pairs: Path, out: Path) -> Step:
    script = ROOT / "recipes" / "tatoeba_en_de" / "prepare.py"
    command = ["python", str(script), "--table", str(pairs), "--out", str(out)]
    return Step("prepare", command, [out])


def table(found: Mapping[str, Any]) -> str:
    """The results as Markdown."""
    scores = ", ".join(f"{name} {bleu:.1f}" for name, bleu in found["bleu"].items())
    return (
        f"{found['table'].strip()}\n\nEncoders: {found['updates']:,} updates; BLEU of their "
        f"translations of the Tatoeba test set, beam {BEAM}: {scores}"
    )


if __name__ == "__main__":
    sys.exit(run_command(main))
