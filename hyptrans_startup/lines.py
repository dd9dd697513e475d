"""Lines that ``fairseq-interactive`` reads: not UTF-8, empty, or longer than the model takes."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from types import ModuleType
from typing import Any

from hyptrans_startup.errors import UserError

logger = logging.getLogger("fairseq_cli.interactive")


@contextmanager
def line_ends_it_all(module: ModuleType) -> Iterator[None]:
    """A traceback, and nothing of the lines after it, for one that is too long or no UTF-8.

    An empty line gives an empty translation, a line that is too long none.
    """
    yield
    stock_read, stock_batches = module.buffered_read, module.make_batches
    first = 0  # the number of the first line in the buffer

    def buffered_read(input: str, buffer_size: int) -> Iterator[list[str]]:
        nonlocal first
        if input == "-" and isinstance(sys.stdin, TextIOWrapper):
            # a locale without UTF-8 would let every byte through
            sys.stdin.reconfigure(encoding="utf-8", errors="strict")
        number = 0
        try:
            for buffer in stock_read(input, buffer_size):
                for part in runs(buffer):
                    first = number
                    number += len(part)
                    yield part
        except UnicodeDecodeError as error:
            raise UserError(
                f"the input is not UTF-8 text after line {number} ({error.reason}); convert it"
            ) from error

    def make_batches(
        lines: list[str], cfg: Any, task: Any, max_positions: Any, encode_fn: Any
    ) -> Iterator[Any]:
        if lines == [""]:
            for mark in ("S-{}\t", "H-{}\t0.0\t", "D-{}\t0.0\t", "P-{}\t"):
                print(mark.format(first))  # noqa: T201
            return
        texts = [line.split("\t")[0] for line in lines] if cfg.generation.constraints else lines
        _, lengths = task.get_interactive_tokens_and_lengths(texts, encode_fn)
        kept = [i for i, length in enumerate(lengths) if length <= longest(max_positions)]
        for i in sorted(set(range(len(lines))) - set(kept)):
            logger.warning(
                "line %d is left out: it has %d tokens, and the model takes %d",
                first + i + 1,
                lengths[i],
                longest(max_positions),
            )
        remaining = [lines[i] for i in kept]
        if not remaining:
            return
        for batch in stock_batches(remaining, cfg, task, max_positions, encode_fn):
            ids = batch.ids.new_tensor([kept[i] for i in batch.ids.tolist()])
            yield batch._replace(ids=ids)

    vars(module).update(buffered_read=buffered_read, make_batches=make_batches)


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


def longest(max_positions: Any) -> int:
    """Return the number of source tokens that a model takes."""
    return int(max_positions[0] if isinstance(max_positions, tuple) else max_positions)
