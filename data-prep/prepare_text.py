"""Prepare any parallel text for fairseq, like ``hyptrans prepare text``."""

import sys

from hyptrans.data.commands.cli import main

if __name__ == "__main__":
    sys.exit(main(["text", *sys.argv[1:]]))
