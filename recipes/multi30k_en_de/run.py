"""Multi30k, English to German: HyboNet against its Euclidean twin, from raw text to a table."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# a recipe is run as a file, and the recipes are not installed
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from hyptrans.support.errors import run_command
from recipes.common import experiment, multi30k, options, results, translation
from recipes.common.commands import Runner, Step
from recipes.common.models import Model
from recipes.common.translation import Run

HERE = Path(__file__).resolve().parent
MODELS = "hybonet_iwslt_d64,euclidean_iwslt_d64"
BEAMS = (1, 5)


def _arguments() -> argparse.Namespace:
    example = "--data ~/multi30k --write-readme"
    parser = options.make_parser(HERE, __doc__, example, archs=MODELS, updates=1500)
    options.add_data(parser, multi30k.CONTENTS, name=multi30k.FOLDER)
    parser.add_argument(
        "--vocab-size",
        type=int,
        default=multi30k.VOCABULARY,
        metavar="N",
        help="sentencepiece pieces",
    )
    return parser.parse_args()


def main() -> None:
    """Run every step and write ``results.json`` and the table."""
    args = _arguments()
    options.check_positive(args, "updates", "vocab_size", "jobs")
    files = multi30k.files(args.data)
    models, run, runner = experiment.start(
        HERE, args, source=multi30k.SOURCE, target=multi30k.TARGET
    )
    prepared = translation.prepare(run, files, args.vocab_size, [])
    runner.run(prepared)
    chains = {model.name: _chain(run, model, prepared) for model in models}
    runner.chains(list(chains.values()), jobs=args.jobs)
    found = _results(runner, run, chains)
    experiment.finish(HERE, args, runner, found, table(found))


def _chain(run: Run, model: Model, prepared: Step) -> list[Step]:
    trained, *translated = translation.train_and_translate(run, model, prepared, beams=BEAMS)
    return [trained, translation.validate(run, model.name, trained), *translated]


def _results(runner: Runner, run: Run, chains: Mapping[str, list[Step]]) -> dict[str, Any]:
    rows, signatures, chrf_signatures = {}, set(), set()
    for name, (trained, validated, *translated) in chains.items():
        scores = [translation.bleu(run, step) for step in translated]
        chrf = translation.chrf(run, translated[-1])
        signatures |= {score.signature for score in scores}
        chrf_signatures.add(chrf.signature)
        rows[name] = {
            "parameters": results.count_parameters(run.checkpoint(name)),
            "valid_perplexity": translation.perplexity(runner, validated),
            **{f"bleu_beam{b}": score.value for b, score in zip(BEAMS, scores, strict=True)},
            f"chrf_beam{BEAMS[-1]}": chrf.value,
            "train_seconds": runner.seconds[trained.name],
        }
    (signature,), (chrf_signature,) = signatures, chrf_signatures
    found = {"models": rows, "signature": signature, "chrf_signature": chrf_signature}
    return {**found, **experiment.conditions(run, runner)}


def table(found: Mapping[str, Any]) -> str:
    """The results as Markdown."""
    header = ["model", "parameters", "valid perplexity", "BLEU, greedy", "BLEU, beam 5"]
    # runs of version 0.1.0 did not measure it
    with_chrf = "chrf_signature" in found
    header += ["chrF, beam 5"] if with_chrf else []
    rows = [
        [
            name,
            f"{row['parameters']:,}",
            f"{row['valid_perplexity']:.2f}",
            f"{row['bleu_beam1']:.1f}",
            f"{row['bleu_beam5']:.1f}",
            *([f"{row['chrf_beam5']:.1f}"] if with_chrf else []),
        ]
        for name, row in found["models"].items()
    ]
    versions = found["versions"]
    signatures = results.signatures(found)
    return (
        f"{results.markdown(header, rows)}\n\nsacreBLEU {signatures} on "
        f"test_2016_flickr; {found['updates']:,} updates; one run of each, seed {found['seed']}; "
        f"torch {versions['torch']}, fairseq {versions['fairseq']}"
    )


if __name__ == "__main__":
    sys.exit(run_command(main))
