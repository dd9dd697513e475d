"""``python -m recipes.quickstart``."""

import sys

from recipes.quickstart.run import program

sys.exit(program())
