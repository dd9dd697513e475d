"""Command line: ``python -m hyptrans --help``, the same as ``hyptrans --help``."""

import sys

from hyptrans.commands.cli import main

if __name__ == "__main__":
    sys.exit(main())
