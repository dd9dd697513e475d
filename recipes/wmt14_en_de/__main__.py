"""WMT'14, English to German, in the papers' settings: from the archives to a table.

Other options go to hyptrans prepare wmt14, for example --raw DIR.
"""

import sys
from pathlib import Path

from hyptrans.support.errors import run_command
from recipes.common import papers
from recipes.common.corpus import Column, Corpus
from recipes.common.options import STOPPED

CORPUS = Corpus(
    Path(__file__).resolve().parent,
    "hybonet_wmt_d64,euclidean_prenorm_wmt_d64,euclidean_wmt_d64",
    (
        Column("bleu_2014", "BLEU, newstest2014", 4),
        Column("chrf_2014", "chrF, newstest2014", 4, "chrf"),
        Column("bleu_2013", "BLEU, newstest2013", 4, subset="test1"),
        Column("chrf_2013", "chrF, newstest2013", 4, "chrf", "test1"),
    ),
    "newstest2014 and newstest2013, of which the latter is the validation set too",
    # Vaswani et al. 2017, sec. 6.1
    of_run={"text_flags": ["--lenpen", "0.6"]},
)
table = CORPUS.table

if __name__ == "__main__":
    sys.exit(run_command(lambda: papers.main(CORPUS, __doc__, "wmt14"), stopped=STOPPED))
