"""Run ``hyptrans probe`` as ``python -m probing``."""

import sys

from probing.commands.cli import main

if __name__ == "__main__":
    sys.exit(main())
