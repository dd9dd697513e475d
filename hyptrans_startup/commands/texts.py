"""Text that commands read: what ``fairseq-preprocess`` is given, and ``fairseq-interactive`` asked.

fairseq takes files of different length without a word, and stops at a line that it cannot use.
"""

import logging
import sys
from collections.abc import Iterator, Mapping
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from hyptrans_startup.errors import UserError
from hyptrans_startup.wrapping import Call, before, told

logger = logging.getLogger("fairseq_cli.interactive")
_first_line = 0
"""Number of the first line in the buffer of ``fairseq-interactive``."""


@before
def misaligned_text(args: Any) -> None:
    """fairseq-preprocess takes an empty file, none, or sides of unequal length, without a word."""
    # of the training text fairseq takes one name, with commas if it has some
    others = f"{args.validpref or ''},{args.testpref or ''}".split(",")
    prefixes = [*filter(None, [args.trainpref, *others])]
    for prefix in prefixes:
        check_text(prefix, args)
    alignments = [Path(f"{prefix}.{args.align_suffix}") for prefix in prefixes]
    if args.align_suffix and alignments and not any(path.is_file() for path in alignments):
        raise UserError(
            f"{alignments[0]} does not exist: --align-suffix is the ending of such a file"
        )
    if args.trainpref in others:
        logger.warning("%s is training text, so the set measures what was learned", args.trainpref)


@told(FileExistsError)
def dictionary_overwritten(error: Exception, args: Any) -> str:
    """A traceback where the folder has a dictionary already."""
    return (
        f"{error} is there already; give another --destdir, "
        "or keep the dictionary with --srcdict and --tgtdict"
    )


def check_text(prefix: str, args: Any) -> None:
    """Raise for a missing, an empty and a misaligned file of one prefix."""
    languages = [args.source_lang] if args.only_source else [args.source_lang, args.target_lang]
    lines = {}
    for language in languages:
        path = prefix if language is None else f"{prefix}.{language}"
        try:
            # as fairseq reads it: a carriage return ends a line too
            with open(path, encoding="utf-8") as text:
                lines[path] = sum(1 for _ in text)
        except FileNotFoundError as error:
            raise UserError(
                f"{path} does not exist; --source-lang and --target-lang are the "
                "endings of the files"
            ) from error
        except UnicodeDecodeError as error:
            raise UserError(f"{path} is not UTF-8 text ({error.reason}); convert it") from error
        if lines[path] == 0:
            raise UserError(f"{path} is empty; it must have one sentence a line")
    if len(set(lines.values())) > 1:
        counts = ", ".join(f"{path} has {count}" for path, count in lines.items())
        raise UserError(
            f"the sides differ in their number of lines: {counts}; line n of one must "
            "be the translation of line n of the other"
        )


def line_ends_it_all(read: Call, input: str, buffer_size: int) -> Iterator[list[str]]:
    """A traceback, and nothing of the lines after it, for a line that is no UTF-8.

    Empty lines come alone, each of them, for `line_too_long` to answer in order.
    """
    global _first_line
    if input == "-" and isinstance(sys.stdin, TextIOWrapper):
        # a locale without UTF-8 would let every byte through
        sys.stdin.reconfigure(encoding="utf-8", errors="strict")
    number = 0
    try:
        for buffer in read(input, buffer_size):
            for part in runs(buffer):
                _first_line = number
                number += len(part)
                yield part
    except UnicodeDecodeError as error:
        raise UserError(
            f"the input is not UTF-8 text after line {number} ({error.reason}); convert it"
        ) from error


def line_too_long(
    make_batches: Call, lines: list[str], cfg: Any, task: Any, max_positions: Any, encode_fn: Any
) -> Iterator[Any]:
    """A traceback, and nothing of the lines after it, for a line that is too long.

    An empty line gives an empty translation, a line that is too long none.
    """
    if lines == [""]:
        for mark in ("S-{}\t", "H-{}\t0.0\t", "D-{}\t0.0\t", "P-{}\t"):
            print(mark.format(_first_line))  # noqa: T201
        return
    texts = [line.split("\t")[0] for line in lines] if cfg.generation.constraints else lines
    _, lengths = task.get_interactive_tokens_and_lengths(texts, encode_fn)
    most = longest(max_positions)
    kept = [i for i, length in enumerate(lengths) if length <= most]
    for i in sorted(set(range(len(lines))) - set(kept)):
        logger.warning(
            "line %d is left out: it has %d tokens, and the model takes %d",
            _first_line + i + 1,
            lengths[i],
            most,
        )
    remaining = [lines[i] for i in kept]
    if not remaining:
        return
    for batch in make_batches(remaining, cfg, task, max_positions, encode_fn):
        ids = batch.ids.new_tensor([kept[i] for i in batch.ids.tolist()])
        yield batch._replace(ids=ids)


def longest(positions: Any) -> int:
    """Tokens of the longest source that a model takes: fairseq says one number, two, or by task."""
    if isinstance(positions, Mapping):
        return min(map(longest, positions.values()))
    return int(positions[0] if isinstance(positions, tuple) else positions)


def runs(lines: list[str]) -> Iterator[list[str]]:
    """Return the lines in order, each empty one alone, so that what is printed stays in order."""
    run: list[str] = []
    for line in lines:
        if line:
            run.append(line)
            continue
        if run:
            yield run
        yield [line]
        run = []
    if run:
        yield run
