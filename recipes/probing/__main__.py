"""``python -m recipes.probing``."""

import sys

from recipes.probing.run import program

sys.exit(program())
