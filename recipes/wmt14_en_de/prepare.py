"""Prepare WMT'14 English to German by the script of HyboNet's code, print the training commands.

Options are those of ``data-prep/prepare_wmt14.py``, for example ``--raw DIR``.
"""

import sys
from pathlib import Path

# a recipe is run as a file, and the recipes are not installed
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from recipes.common.preparation import prepare_from_archive

if __name__ == "__main__":
    recipe = Path(__file__).resolve().parent
    prepare_from_archive(recipe, "prepare_wmt14.py", __doc__)
