"""Prepare WMT'14 for fairseq: ``python data-prep/prepare_wmt14.py --help``."""

import sys

from hyptrans.dataprep.errors import run_command
from hyptrans.dataprep.wmt14 import main

if __name__ == "__main__":
    sys.exit(run_command(main))
