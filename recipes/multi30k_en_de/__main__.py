"""``python -m recipes.multi30k_en_de``."""

import sys

from recipes.multi30k_en_de.run import program

sys.exit(program())
