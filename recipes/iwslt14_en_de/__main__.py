"""IWSLT'14, English to German, in the papers' settings: from the archive to a table.

Other options go to hyptrans prepare iwslt14, for example --archive de-en.tgz.
"""

import sys
from pathlib import Path

from hyptrans.support.errors import run_command
from recipes.common import papers
from recipes.common.corpus import Column, Corpus
from recipes.common.options import STOPPED
from recipes.common.scoring import TOKENS

CORPUS = Corpus(
    Path(__file__).resolve().parent,
    "hybonet_iwslt_d64,euclidean_prenorm_iwslt_d64,euclidean_iwslt_d64",
    (
        Column("bleu", "BLEU", 5),
        Column("chrf", "chrF", 5, "chrf"),
        Column("bleu_tokens", "BLEU of tokens", 5, TOKENS),
    ),
    "the test set, which is lower-cased",
    lowercase=True,
)
table = CORPUS.table

if __name__ == "__main__":
    sys.exit(run_command(lambda: papers.main(CORPUS, __doc__, "iwslt14"), stopped=STOPPED))
