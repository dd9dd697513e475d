"""Multi30k, English to German: hyperbolic Transformers against their Euclidean twin."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hyptrans.support.errors import run_command
from recipes.common import experiment, options, translation
from recipes.common.experiment import Column, Experiment
from recipes.multi30k_en_de import data

HERE = Path(__file__).resolve().parent
MODELS = "hybonet_plus_iwslt_d64,euclidean_prenorm_iwslt_d64"
COLUMNS = (
    Column("bleu_beam1", "BLEU, greedy", 1),
    Column("bleu_beam5", "BLEU, beam 5", 5),
    Column("chrf_beam5", "chrF, beam 5", 5, "chrf"),
)


def main(argv: Sequence[str] | None = None) -> None:
    """Run every step, write ``results.json`` and print the table."""
    example = "--data ~/multi30k --archs hvt_iwslt_d64,euclidean_prenorm_iwslt_d64"
    parser = experiment.make_parser(HERE, __doc__, example, archs=MODELS, updates=3000)
    data.add_data(parser)
    about = "sentencepiece pieces (default: %(default)s)"
    parser.add_argument("--vocab-size", type=int, default=data.VOCABULARY, metavar="N", help=about)
    args = parser.parse_args(argv)
    options.check_positive(args, "vocab_size")
    files = data.files(args.data)
    made = Experiment(HERE, args, data.LANGUAGES)
    made.runner.run(translation.prepare(made.run, files, args.vocab_size))
    made.finish(made.measure(COLUMNS), table)


def table(found: Mapping[str, Any]) -> str:
    """The results as Markdown."""
    return experiment.table(found, COLUMNS, data.SETS["test"])


if __name__ == "__main__":
    sys.exit(run_command(main, stopped=options.STOPPED))
