"""Multi30k, English to German: HyboNet against its Euclidean twin, from raw text to a table."""

from __future__ import annotations

import argparse
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
from recipes.common.translation import Run

HERE = Path(__file__).resolve().parent
SOURCE, TARGET = "en", "de"
SETS = {"train": "train", "valid": "val", "test": "test_2016_flickr"}
VOCABULARY = 6000
BEAMS = (1, 5)


def _arguments() -> argparse.Namespace:
    parser = options.make_parser(
        __doc__ or "",
        "python recipes/multi30k_en_de/run.py --data ~/multi30k --write-readme",
        out="runs/multi30k_en_de",
        archs="hybonet_iwslt_d64,euclidean_iwslt_d64",
    )
    add = parser.add_argument
    data = os.environ.get("HYPTRANS_DATA")
    add(
        "--data",
        type=Path,
        default=Path(data) / "multi30k_en_de" if data else None,
        metavar="DIR",
        help="folder with train, val and test_2016_flickr as .en and .de, plain or .gz "
        "(HYPTRANS_DATA/multi30k_en_de if that variable is set)",
    )
    add("--updates", type=int, default=1500, metavar="N", help="optimizer steps of each training")
    add("--vocab-size", type=int, default=VOCABULARY, metavar="N", help="sentencepiece pieces")
    return parser.parse_args()


def main() -> None:
    """Run every step and write ``results.json`` and the table."""
    args = _arguments()
    options.check_positive(args, "updates", "vocab_size", "jobs")
    models = read_models(HERE, args.archs.split(","))
    files = {split: _pair(args.data, name) for split, name in SETS.items()}
    runner = Runner(args.out, overwrite=args.overwrite)
    run = Run(
        out=args.out,
        data=args.out / "data",
        source=SOURCE,
        target=TARGET,
        seed=args.seed,
        updates=args.updates,
        log_interval=50,
        threads=options.threads_of(args.jobs, len(models)),
        cpu=args.cpu,
    )
    prepared = translation.prepare(run, files, args.vocab_size, [])
    runner.run(prepared)
    chains = {model.arch: _chain(run, model, prepared) for model in models}
    runner.chains(list(chains.values()), jobs=args.jobs)
    found = _results(runner, run, models, chains)
    results.write_json(run.out / "results.json", found)
    print(f"\n{table(found)}\n")
    runner.say(f"results: {run.out / 'results.json'}")
    if args.write_readme:
        results.publish(HERE, found, table(found))
        runner.say(f"table: {HERE / 'README.md'}")


def _pair(data: Path | None, name: str) -> tuple[Path, Path]:
    """The files of one set.

    Raises:
        UserError: a file is missing, or no folder is named.
    """
    if data is None:
        raise UserError(
            "--data is needed: a folder with Multi30k task 1 as raw text, "
            "from https://github.com/multi30k/dataset"
        )
    pair = []
    for language in (SOURCE, TARGET):
        plain = data / f"{name}.{language}"
        found = [path for path in (plain, plain.with_name(f"{plain.name}.gz")) if path.is_file()]
        if not found:
            raise UserError(f"--data: {plain} and {plain.name}.gz are both missing")
        pair.append(found[0])
    return pair[0], pair[1]


def _chain(run: Run, model: Model, prepared: Step) -> list[Step]:
    trained = translation.train(run, model, prepared)
    validated = translation.validate(run, model.arch, trained)
    translated = [translation.generate(run, model.arch, trained, beam=beam) for beam in BEAMS]
    return [trained, validated, *translated]


def _results(
    runner: Runner, run: Run, models: list[Model], chains: Mapping[str, list[Step]]
) -> dict[str, Any]:
    rows, signatures = {}, set()
    for model in models:
        _, validated, *translated = chains[model.arch]
        scores = [translation.bleu(run, step) for step in translated]
        signatures |= {score.signature for score in scores}
        rows[model.arch] = {
            "parameters": results.count_parameters(run.checkpoint(model.arch)),
            "valid_perplexity": translation.perplexity(runner, validated),
            **{f"bleu_beam{b}": score.bleu for b, score in zip(BEAMS, scores, strict=True)},
            "train_seconds": runner.seconds[f"train_{model.arch}"],
        }
    (signature,) = signatures
    return {
        "models": rows,
        "signature": signature,
        "seed": run.seed,
        "updates": run.updates,
        "threads": run.threads,
        **results.surroundings(),
        "commands": runner.commands,
    }


def table(found: Mapping[str, Any]) -> str:
    """The results as Markdown."""
    header = ["model", "parameters", "valid perplexity", "BLEU, greedy", "BLEU, beam 5"]
    rows = [
        [
            name,
            f"{row['parameters']:,}",
            f"{row['valid_perplexity']:.2f}",
            f"{row['bleu_beam1']:.1f}",
            f"{row['bleu_beam5']:.1f}",
        ]
        for name, row in found["models"].items()
    ]
    versions = found["versions"]
    return (
        f"{results.markdown(header, rows)}\n\nsacreBLEU `{found['signature']}` on "
        f"test_2016_flickr; {found['updates']:,} updates; one run of each, seed {found['seed']}; "
        f"torch {versions['torch']}, fairseq {versions['fairseq']}"
    )


if __name__ == "__main__":
    sys.exit(options.run_recipe(main))
