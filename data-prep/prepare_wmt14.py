"""Prepare WMT'14 for fairseq, like ``hyptrans prepare wmt14``."""

import sys

from hyptrans.data.commands.cli import main

if __name__ == "__main__":
    sys.exit(main(["wmt14", *sys.argv[1:]]))
