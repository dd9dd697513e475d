"""Compare parses with gold trees of the same words, by the scorer that stanza's trainers use.

LAS counts words whose head and relation are right, a relation without its subtype (``nmod:poss`` is
``nmod``), as the CoNLL 2018 shared task does; all words count, punctuation too.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from hyptrans.support.errors import UserError, run_command
from hyptrans.support.extras import require
from hyptrans.support.files import write_json
from recipes.common import options

SCORES = ("upos", "uas", "las")


def main(argv: Sequence[str] | None = None) -> None:
    """Write the shares.

    Raises:
        UserError: the parses are of other words.
    """
    parser = options.script_parser(__doc__)
    for name in ("gold", "parsed"):
        parser.add_argument(f"--{name}", type=Path, required=True, metavar="CONLLU")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="JSON to write")
    args = parser.parse_args(argv)
    stanza = require("stanza.models.common.utils", "probing")
    try:
        scored = stanza.ud_scores(str(args.gold), str(args.parsed))
    except stanza.UDError as error:
        raise UserError(f"{args.parsed} has other words than {args.gold}: {error}") from None
    found = {name: scored[name.upper()].f1 for name in SCORES}
    counts = {name: scored[name.title()].gold_total for name in ("words", "sentences")}
    write_json(args.out, {**found, **counts})
    print(", ".join(f"{name.upper()} {share:.4f}" for name, share in found.items()))


if __name__ == "__main__":
    sys.exit(run_command(main))
