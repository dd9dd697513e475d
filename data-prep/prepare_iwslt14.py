"""Prepare IWSLT'14 for fairseq, like ``hyptrans prepare iwslt14``."""

import sys

from hyptrans.data.commands.cli import main

if __name__ == "__main__":
    sys.exit(main(["iwslt14", *sys.argv[1:]]))
