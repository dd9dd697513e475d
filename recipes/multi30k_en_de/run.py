"""Multi30k, English to German: hyperbolic Transformers against their Euclidean twin."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hyptrans.support.errors import run_command
from recipes.common import experiment, multi30k, options, rows, scoring, translation
from recipes.common.rows import Column

HERE = Path(__file__).resolve().parent
MODELS = "hybonet_plus_iwslt_d64,euclidean_prenorm_iwslt_d64"
COLUMNS = (
    Column("bleu_beam1", "BLEU, greedy", beam=1),
    Column("bleu_beam5", "BLEU, beam 5", beam=5),
    Column("chrf_beam5", "chrF, beam 5", beam=5, measure=scoring.chrf, tested="chrf"),
)


def _arguments() -> argparse.Namespace:
    example = "--data ~/multi30k --archs hvt_iwslt_d64,euclidean_prenorm_iwslt_d64"
    parser = options.make_parser(HERE, __doc__, example, archs=MODELS, updates=3000)
    multi30k.add_data(parser)
    parser.add_argument(
        "--vocab-size",
        type=int,
        default=multi30k.VOCABULARY,
        metavar="N",
        help="sentencepiece pieces",
    )
    return parser.parse_args()


def main() -> None:
    """Run every step, write ``results.json`` and print the table."""
    args = _arguments()
    options.check_positive(args, "updates", "vocab_size", "jobs")
    files = multi30k.files(args.data)
    models, run, runner = experiment.start(
        HERE, args, source=multi30k.SOURCE, target=multi30k.TARGET
    )
    prepared = translation.prepare(run, files, args.vocab_size)
    runner.run(prepared)
    found = rows.measure(models, run, runner, prepared, COLUMNS, jobs=args.jobs)
    experiment.finish(HERE, args, runner, found, table(found))


def table(found: Mapping[str, Any]) -> str:
    """The results as Markdown."""
    return rows.table(found, COLUMNS, multi30k.SETS["test"])


def program() -> int:
    """Run the recipe as a command does; returns the exit status."""
    return run_command(main, stopped=options.STOPPED)


if __name__ == "__main__":
    sys.exit(program())
