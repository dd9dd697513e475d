"""Draw distinct sentences to parse; those of dev and test come from texts unseen in training."""

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
        texts: text of each set, one sentence per line, plain or gzipped; sentences in the text of
            dev or test are not drawn for train, and those in both only for dev.
        sentences: number of sentences in all three sets together.
        held_out: number of sentences in dev and in test, each.
        seed: seed of the draw.

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
                f"{texts[name]} has {len(lines)} distinct sentences, but the options need {count}: "
                "lower --sentences or --held-out"
            )
        drawn[name] = rng.sample(lines, count)
        taken |= set(lines)
    return drawn


def _distinct(text: Path, others: Collection[str]) -> list[str]:
    """Return the distinct sentences of a text in their order, without those in ``others``."""
    found = dict.fromkeys(filter(None, map(str.strip, read_lines(text))))
    return [line for line in found if line not in others]
