"""Command line: ``python -m probing --help``."""

import sys

from probing.cli import main

if __name__ == "__main__":
    sys.exit(main())
