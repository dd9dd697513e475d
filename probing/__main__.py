"""Command line: ``python -m probing --help``."""

import sys

from probing.commands.cli import main

if __name__ == "__main__":
    sys.exit(main())
