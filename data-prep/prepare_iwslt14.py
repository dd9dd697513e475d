"""Prepare IWSLT'14 for fairseq: ``python data-prep/prepare_iwslt14.py --help``."""

import sys

from hyptrans.dataprep.commands.iwslt14 import main
from hyptrans.support.errors import run_command

if __name__ == "__main__":
    sys.exit(run_command(main))
