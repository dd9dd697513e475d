"""Compare parses with gold trees of the same words: shares of right tags, heads and relations.

LAS counts words whose head and relation are right, a relation without its subtype (``nmod:poss`` is
``nmod``), as the CoNLL 2018 shared task does; all words count, punctuation too.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hyptrans.support.errors import UserError, run_command
from hyptrans.support.extras import require
from hyptrans.support.files import write_json
from hyptrans.support.lines import read_lines
from recipes.common import options


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
    gold, parsed = (_sentences(path) for path in (args.gold, args.parsed))
    if [len(sentence) for sentence in gold] != [len(sentence) for sentence in parsed]:
        raise UserError(f"{args.parsed} has other sentences or words than {args.gold}")
    pairs = [
        (one, other)
        for both in zip(gold, parsed, strict=True)
        for one, other in zip(*both, strict=True)
    ]
    right = {
        "upos": [one["upos"] == other["upos"] for one, other in pairs],
        "uas": [one["head"] == other["head"] for one, other in pairs],
        "las": [_label(one) == _label(other) for one, other in pairs],
    }
    found = {name: sum(values) / len(pairs) for name, values in right.items()}
    write_json(args.out, {**found, "words": len(pairs), "sentences": len(gold)})
    print(", ".join(f"{name.upper()} {share:.4f}" for name, share in found.items()))


def _sentences(path: Path) -> list[list[dict[str, Any]]]:
    """Words of each sentence, without tokens of several words and empty nodes."""
    text = "\n".join(read_lines(path)) + "\n\n"
    sentences = require("conllu", "probing").parse(text)
    return [[row for row in rows if isinstance(row["id"], int)] for rows in sentences]


def _label(row: dict[str, Any]) -> tuple[Any, str]:
    return row["head"], str(row["deprel"]).partition(":")[0]


if __name__ == "__main__":
    sys.exit(run_command(main))
