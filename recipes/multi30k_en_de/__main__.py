"""Multi30k, English to German: hyperbolic Transformers against their Euclidean twin."""

import sys
from collections.abc import Sequence
from pathlib import Path

from hyptrans.support.errors import run_command
from recipes.common import options, translation
from recipes.common.corpus import Corpus
from recipes.common.scoring import Column

HERE = Path(__file__).resolve().parent
LANGUAGES = ("en", "de")
SETS = {"train": "train", "valid": "val", "test": "test_2016_flickr"}
TEXT = ("--raw-text", "--bpe", "sentencepiece", "--vocab-size", "6000")
"""Text options of ``hyptrans prepare text``."""
CONTENTS = "train, val and test_2016_flickr as .en and .de, plain or .gz"
CORPUS = Corpus(
    HERE,
    "hybonet_plus_iwslt_d64,euclidean_prenorm_iwslt_d64",
    (
        Column("bleu_beam1", "BLEU, greedy", 1),
        Column("bleu_beam5", "BLEU, beam 5", 5),
        Column("chrf_beam5", "chrF, beam 5", 5, "chrf"),
    ),
    SETS["test"],
    3000,
)
table = CORPUS.table


def main(argv: Sequence[str] | None = None) -> None:
    """Train and score all unfinished models and print the table."""
    example = "--data ~/multi30k --archs hvt_iwslt_d64,euclidean_prenorm_iwslt_d64"
    parser = CORPUS.parser(__doc__, example)
    options.add_data(parser, CONTENTS, name=HERE.name)
    args = parser.parse_args(argv)
    found = files(args.data)
    CORPUS.run(args, LANGUAGES, lambda run: translation.prepared(run, found, TEXT))


def files(data: Path | None) -> dict[str, tuple[Path, Path]]:
    """Return the source and target file of each set in a folder.

    Raises:
        UserError: a file is missing, or there is no folder (``data`` is None).
    """
    data = options.required(data, "Multi30k task 1 as raw text", "multi30k/dataset")
    source, target = LANGUAGES
    return {
        split: (options.file(data, f"{name}.{source}"), options.file(data, f"{name}.{target}"))
        for split, name in SETS.items()
    }


if __name__ == "__main__":
    sys.exit(run_command(main))
