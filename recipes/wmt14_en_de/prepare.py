"""Prepare WMT'14 English to German by the script of HyboNet's code, print the training commands.

Options are those of ``data-prep/prepare_wmt14.py``, for example ``--raw DIR``.
"""

from pathlib import Path

from recipes.common.preparation import prepare_from_archive

if __name__ == "__main__":
    recipe = Path(__file__).resolve().parent
    prepare_from_archive(recipe, "prepare_wmt14.py", __doc__)
