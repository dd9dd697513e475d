"""Write the toy treebank, like ``hyptrans prepare toy``."""

import sys

from hyptrans.data.commands.cli import main

if __name__ == "__main__":
    sys.exit(main(["toy", *sys.argv[1:]]))
