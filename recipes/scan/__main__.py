"""``python -m recipes.scan``."""

import sys

from recipes.scan.run import program

sys.exit(program())
