"""``hyptrans probe`` by the name of its package."""

import sys

from probing.commands.cli import main

if __name__ == "__main__":
    sys.exit(main())
