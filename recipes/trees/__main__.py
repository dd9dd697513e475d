"""``python -m recipes.trees``."""

import sys

from recipes.trees.run import program

sys.exit(program())
