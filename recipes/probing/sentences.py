"""Distinct sentences to parse, those of dev and test from texts that no encoder has seen."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from pathlib import Path

from hyptrans.support.errors import UserError
from hyptrans.support.lines import read_lines


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


def draw(
    text: Path, held_out_text: Sequence[Path], *, sentences: int, held_out: int, seed: int
) -> dict[str, list[str]]:
    """Draw the sentences of train, dev and test.

    Args:
        text: a sentence a line, plain or gzipped.
        held_out_text: texts to draw dev and test from; what stands in them is not drawn to train
            on, and of two that a sentence stands in, the first has it.
        sentences: of all three sets.
        held_out: of dev and of test, each.
        seed: of the draw.

    Raises:
        UserError: a text has fewer sentences.
    """
    rng = random.Random(seed)
    valid_text, test_text = held_out_text
    valid = _distinct(valid_text)
    test = _distinct(test_text, valid)
    train = _distinct(text, [*valid, *test])
    dev_lines = _sample(valid, held_out, valid_text, rng)
    test_lines = _sample(test, held_out, test_text, rng)
    train_lines = _sample(train, sentences - 2 * held_out, text, rng)
    return {"train": train_lines, "dev": dev_lines, "test": test_lines}


def _distinct(text: Path, others: Collection[str] = ()) -> list[str]:
    """The sentences of a text, each once and in its order, without others."""
    found = dict.fromkeys(filter(None, map(str.strip, read_lines(text))))
    left_out = set(others)
    return [line for line in found if line not in left_out]


def _sample(lines: Sequence[str], count: int, text: Path, rng: random.Random) -> list[str]:
    if len(lines) < count:
        raise UserError(
            f"{text} has {len(lines)} distinct sentences and the options want {count}: "
            "lower --sentences or --held-out"
        )
    return rng.sample(lines, count)
