"""``python -m recipes.study``."""

import sys

from recipes.study.run import program

sys.exit(program())
