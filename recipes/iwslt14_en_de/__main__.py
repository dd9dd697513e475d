"""``python -m recipes.iwslt14_en_de``."""

import sys

from recipes.iwslt14_en_de.run import program

sys.exit(program())
