"""Distinct sentences to parse, those of dev and test from texts that no encoder has seen."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from pathlib import Path

from hyptrans.support.errors import UserError
from hyptrans.support.lines import read_lines


def draw(
    texts: Mapping[str, Path], *, sentences: int, held_out: int, seed: int
) -> dict[str, list[str]]:
    """Draw the sentences of train, dev and test.

    Args:
        texts: of each set, a sentence a line, plain or gzipped; what stands in that of dev or test
            is not drawn to train on, and what stands in both is dev's.
        sentences: of all three sets.
        held_out: of dev and of test, each.
        seed: of the draw.

    Raises:
        UserError: a text has fewer sentences, or none are left to train on.
    """
    counts = {"dev": held_out, "test": held_out, "train": sentences - 2 * held_out}
    if counts["train"] < 1:
        raise UserError(
            f"--sentences {sentences} leaves nothing to train on beside two times --held-out "
            f"{held_out}"
        )
    rng, taken = random.Random(seed), set[str]()
    drawn = {}
    for name, count in counts.items():
        lines = _distinct(texts[name], taken)
        if len(lines) < count:
            raise UserError(
                f"{texts[name]} has {len(lines)} distinct sentences and the options want {count}: "
                "lower --sentences or --held-out"
            )
        drawn[name] = rng.sample(lines, count)
        taken |= set(lines)
    return drawn


def _distinct(text: Path, others: Collection[str]) -> list[str]:
    """The sentences of a text, each once and in its order, without others."""
    found = dict.fromkeys(filter(None, map(str.strip, read_lines(text))))
    return [line for line in found if line not in others]
