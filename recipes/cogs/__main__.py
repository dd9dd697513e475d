"""``python -m recipes.cogs``."""

import sys

from recipes.cogs.run import program

sys.exit(program())
