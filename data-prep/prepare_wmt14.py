"""Prepare WMT'14 for fairseq: ``python data-prep/prepare_wmt14.py --help``."""

import sys

from hyptrans.dataprep.commands.wmt14 import main
from hyptrans.support.errors import run_command

if __name__ == "__main__":
    sys.exit(run_command(main))
