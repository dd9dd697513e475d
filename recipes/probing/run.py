"""Train encoders on Tatoeba, English to German, and read the trees of English EWT out of them."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# a recipe is run as a file, and the recipes are not installed
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from hyptrans.support.errors import UserError
from recipes.common import options, results, translation
from recipes.common.commands import Runner, Step
from recipes.common.models import Model, read_models
from recipes.common.translation import ROOT, Run

HERE = Path(__file__).resolve().parent
TREES = {split: f"ud_english_ewt/en_ewt-ud-{split}.conllu.gz" for split in ("train", "dev", "test")}
TABLE = "tatoeba_en_de/deu-eng.zip"
BEAM = 5


def _arguments() -> argparse.Namespace:
    parser = options.make_parser(
        __doc__ or "",
        "python recipes/probing/run.py --data ~/corpora --write-readme",
        out="runs/probing",
        archs="hybonet_iwslt_d64,han_iwslt_d64,euclidean_iwslt_d64",
    )
    add = parser.add_argument
    data = os.environ.get("HYPTRANS_DATA")
    add(
        "--data",
        type=Path,
        default=Path(data) if data else None,
        metavar="DIR",
        help=f"folder with {TABLE} and {TREES['train']}, … (HYPTRANS_DATA if that is set)",
    )
    add("--updates", type=int, default=2000, metavar="N", help="optimizer steps of each encoder")
    add("--steps", type=int, default=2000, metavar="N", help="steps of each probe")
    return parser.parse_args()


def main() -> None:
    """Run every step and write ``results.json`` and the table."""
    args = _arguments()
    options.check_positive(args, "updates", "steps", "jobs")
    models = read_models(HERE, args.archs.split(","))
    pairs, *trees = (_file(args.data, name) for name in (TABLE, *TREES.values()))
    runner = Runner(args.out, overwrite=args.overwrite)
    run = Run(
        out=args.out,
        data=args.out / "data",
        source="en",
        target="de",
        seed=args.seed,
        updates=args.updates,
        log_interval=50,
        threads=options.threads_of(args.jobs, len(models)),
        cpu=args.cpu,
    )
    script = ROOT / "recipes" / "tatoeba_en_de" / "prepare.py"
    command = ["python", str(script), "--table", str(pairs), "--out", str(run.data)]
    prepared = Step("prepare", command, [run.data])
    runner.run(prepared)
    chains = [_chain(run, model, prepared) for model in models]
    runner.chains(chains, jobs=args.jobs)
    trained = [chain[0] for chain in chains]
    probed = translation.probe(
        run, models, dict(zip(TREES, trees, strict=True)), trained, args.steps
    )
    runner.run(probed)
    found = {
        "bleu": {
            model.arch: translation.bleu(run, chain[-1]).bleu
            for model, chain in zip(models, chains, strict=True)
        },
        "probes": json.loads((args.out / "probes" / "results.json").read_text(encoding="utf-8")),
        "table": (args.out / "probes" / "results.md").read_text(encoding="utf-8"),
        "updates": args.updates,
        "train_seconds": {m.arch: runner.seconds[f"train_{m.arch}"] for m in models},
        "probe_seconds": runner.seconds[probed.name],
        **results.surroundings(),
        "commands": runner.commands,
    }
    results.write_json(args.out / "results.json", found)
    print(f"\n{table(found)}\n")
    if args.write_readme:
        results.publish(HERE, found, table(found))
        runner.say(f"table: {HERE / 'README.md'}")


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


def _chain(run: Run, model: Model, prepared: Step) -> list[Step]:
    trained = translation.train(run, model, prepared)
    return [trained, translation.generate(run, model.arch, trained, beam=BEAM)]


def table(found: Mapping[str, Any]) -> str:
    """The results as Markdown."""
    scores = ", ".join(f"{name} {bleu:.1f}" for name, bleu in found["bleu"].items())
    return (
        f"{found['table'].strip()}\n\nEncoders: {found['updates']:,} updates; BLEU of their "
        f"translations of the Tatoeba test set, beam {BEAM}: {scores}"
    )


if __name__ == "__main__":
    sys.exit(options.run_recipe(main))
