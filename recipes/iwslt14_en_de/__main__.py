"""IWSLT'14, English to German, in the papers' settings: from the archive to a table.

Other options go to data-prep/prepare_iwslt14.py, for example --archive de-en.tgz.
"""

import sys
from pathlib import Path

from hyptrans.support.errors import run_command
from recipes.common.archives import Corpus
from recipes.common.experiment import Column
from recipes.common.options import STOPPED
from recipes.common.scoring import TOKENS

BEAM = 5
CORPUS = Corpus(
    recipe=Path(__file__).resolve().parent,
    script="prepare_iwslt14.py",
    archs="hybonet_iwslt_d64,euclidean_prenorm_iwslt_d64,euclidean_iwslt_d64",
    columns=(
        Column("bleu", "BLEU", BEAM),
        Column("chrf", "chrF", BEAM, "chrf"),
        Column("bleu_tokens", "BLEU of tokens", BEAM, TOKENS),
    ),
    test="the test set, which is lower-cased",
    lowercase=True,
)
table = CORPUS.table

if __name__ == "__main__":
    sys.exit(run_command(lambda: CORPUS.main(__doc__), stopped=STOPPED))
