"""Prepare WMT'14 English to German as HyboNet's paper has it, and print the training commands.

Options are those of ``data-prep/prepare_wmt14.py``, for example ``--raw DIR``.
"""

import argparse
import sys
from pathlib import Path

# a recipe is run as a file, and the recipes are not installed
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from recipes.common.preparation import prepare, show_next


def main() -> int:
    """Run the preparation and return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument(
        "--out", default="data/wmt14_en_de", help="folder to write (default: %(default)s)"
    )
    args, others = parser.parse_known_args()
    options = ["--source-lang", "en", "--target-lang", "de", "--out", args.out, *others]
    status = prepare("prepare_wmt14.py", options)
    if status == 0:
        show_next(Path(__file__).parent, Path(args.out))
    return status


if __name__ == "__main__":
    sys.exit(main())
