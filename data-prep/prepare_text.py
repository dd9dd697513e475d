"""Prepare any parallel text for fairseq: ``python data-prep/prepare_text.py --help``."""

import sys

from hyptrans.dataprep.errors import run_command
from hyptrans.dataprep.text import main

if __name__ == "__main__":
    sys.exit(run_command(main))
