"""Draw distinct sentences, a line each, into train.txt, dev.txt and test.txt.

All of them from one text, or those of dev and test from texts of their own.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Collection, Sequence
from pathlib import Path

from hyptrans.support.errors import UserError, run_command
from hyptrans.support.files import write_whole
from hyptrans.support.lines import read_lines
from recipes.common import options


def main(argv: Sequence[str] | None = None) -> None:
    """Write the three files.

    Raises:
        UserError: a text has fewer sentences.
    """
    parser = options.script_parser(__doc__)
    add = parser.add_argument
    add("--text", type=Path, required=True, metavar="FILE", help="a sentence a line, or gzipped")
    add("--sentences", type=int, required=True, metavar="N", help="sentences of all three files")
    add("--held-out", type=int, required=True, metavar="N", help="of dev and of test, each")
    add(
        "--held-out-text",
        nargs=2,
        type=Path,
        metavar=("VALID", "TEST"),
        help="texts to draw dev and test from; what stands in them is not drawn to train on",
    )
    add("--seed", type=int, default=1, help="of the draw (default: %(default)s)")
    add("--out", type=Path, required=True, metavar="DIR", help="folder to write")
    args = parser.parse_args(argv)
    options.check_positive(args, "sentences", "held_out")
    check_counts(args.sentences, args.held_out)
    rng = random.Random(args.seed)
    if args.held_out_text:
        sets = _apart(args.text, args.held_out_text, args.sentences, args.held_out, rng)
    else:
        lines = _draw(_distinct(args.text), args.sentences, args.text, rng)
        first, second = args.held_out, 2 * args.held_out
        sets = {"dev": lines[:first], "test": lines[first:second], "train": lines[second:]}
    for name, members in sets.items():
        write_whole(args.out / f"{name}.txt", "".join(f"{line}\n" for line in members))
        print(f"{name}: {len(members)} sentences")


def check_counts(sentences: int, held_out: int) -> None:
    """Refuse so few sentences that none is left to train on.

    Raises:
        UserError: it is so.
    """
    if sentences <= 2 * held_out:
        raise UserError(
            f"--sentences {sentences} leaves nothing to train on beside two times --held-out "
            f"{held_out}"
        )


def _apart(
    text: Path, held_out_text: Sequence[Path], sentences: int, held_out: int, rng: random.Random
) -> dict[str, list[str]]:
    """Dev and test of texts of their own; no sentence of theirs is drawn to train on."""
    valid_text, test_text = held_out_text
    dev = _distinct(valid_text)
    test = _without(_distinct(test_text), set(dev))
    train = _without(_distinct(text), {*dev, *test})
    return {
        "dev": _draw(dev, held_out, valid_text, rng),
        "test": _draw(test, held_out, test_text, rng),
        "train": _draw(train, sentences - 2 * held_out, text, rng),
    }


def _distinct(text: Path) -> list[str]:
    return list(dict.fromkeys(filter(None, map(str.strip, read_lines(text)))))


def _without(lines: Sequence[str], others: Collection[str]) -> list[str]:
    return [line for line in lines if line not in others]


def _draw(lines: Sequence[str], count: int, text: Path, rng: random.Random) -> list[str]:
    """Draw without replacement.

    Raises:
        UserError: there are fewer lines.
    """
    if len(lines) < count:
        raise UserError(
            f"{text} has {len(lines)} distinct sentences and {count} are asked for: "
            "lower --sentences or --held-out"
        )
    return rng.sample(lines, count)


if __name__ == "__main__":
    sys.exit(run_command(main))
