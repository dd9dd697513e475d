"""Prepare any parallel text for fairseq: ``python data-prep/prepare_text.py --help``."""

import sys

from hyptrans.dataprep.commands.text import main
from hyptrans.support.errors import run_command

if __name__ == "__main__":
    sys.exit(run_command(main))
