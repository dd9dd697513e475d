"""IWSLT'14, English to German, in the papers' settings: from the archive to a table.

Other options go to data-prep/prepare_iwslt14.py, for example --archive de-en.tgz.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from hyptrans.support.errors import run_command
from recipes.common import scoring
from recipes.common.archives import Corpus
from recipes.common.options import STOPPED
from recipes.common.preparation import TARGET
from recipes.common.rows import Column

BEAM = 5
CORPUS = Corpus(
    recipe=Path(__file__).resolve().parent,
    script="prepare_iwslt14.py",
    archs="hybonet_iwslt_d64,euclidean_prenorm_iwslt_d64,euclidean_iwslt_d64",
    columns=(
        Column(
            "bleu", "BLEU", BEAM, measure=partial(scoring.score, lowercase=True), lowercase=True
        ),
        Column(
            "chrf",
            "chrF",
            BEAM,
            measure=partial(scoring.chrf, lowercase=True),
            tested="chrf",
            lowercase=True,
        ),
        Column(
            "bleu_tokens",
            "BLEU of tokens",
            BEAM,
            measure=partial(scoring.lowercased_bleu, language=TARGET),
            tested=None,
        ),
    ),
    test="the test set, which is lower-cased",
)
table = CORPUS.table


def program() -> int:
    """Run the recipe as a command does; returns the exit status."""
    return run_command(lambda: CORPUS.main(__doc__), stopped=STOPPED)


if __name__ == "__main__":
    sys.exit(program())
