"""``python -m recipes.wmt14_en_de``."""

import sys

from recipes.wmt14_en_de.run import program

sys.exit(program())
