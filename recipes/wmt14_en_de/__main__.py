"""WMT'14, English to German, in the papers' settings: from the archives to a table.

Other options go to data-prep/prepare_wmt14.py, for example --raw DIR.
"""

import sys
from pathlib import Path

from hyptrans.support.errors import run_command
from recipes.common.archives import Corpus
from recipes.common.experiment import Column
from recipes.common.options import STOPPED

BEAM = 4
CORPUS = Corpus(
    recipe=Path(__file__).resolve().parent,
    script="prepare_wmt14.py",
    archs="hybonet_wmt_d64,euclidean_prenorm_wmt_d64,euclidean_wmt_d64",
    columns=(
        Column("bleu_2014", "BLEU, newstest2014", BEAM),
        Column("chrf_2014", "chrF, newstest2014", BEAM, "chrf"),
        Column("bleu_2013", "BLEU, newstest2013", BEAM, subset="test1"),
        Column("chrf_2013", "chrF, newstest2013", BEAM, "chrf", "test1"),
    ),
    test="newstest2014 and newstest2013",
    validated="newstest2013",
    # Vaswani et al. 2017, sec. 6.1
    search_flags=["--lenpen", "0.6"],
)
table = CORPUS.table

if __name__ == "__main__":
    sys.exit(run_command(lambda: CORPUS.main(__doc__), stopped=STOPPED))
