"""Hypotheses of one sentence share what was computed of it: its keys and values."""

import math

import torch
from torch import Tensor


def beams_of(memory: Tensor) -> int:
    """How many hypotheses at a time have the same source, as beam search lays them out.

    Shapes: ``[B, S, D]``. Rows ``0`` to ``n - 1``, ``n`` to ``2 n - 1``, … are equal for the ``n``
    returned; 1 where nothing repeats.
    """
    changes = (memory[1:] != memory[:-1]).flatten(1).any(1).nonzero() + 1
    return math.gcd(len(memory), *changes.flatten().tolist())


def sentence_rows(new_order: Tensor, beams: int) -> Tensor:
    """Which sentences' rows are needed after hypotheses were reordered.

    One for every ``beams`` hypotheses where those still share a sentence, as in beam search; else
    one for every hypothesis.

    Shapes: ``[B']``, rows of hypotheses -> ``[B' / beams]`` or ``[B']``, rows of sentences.
    """
    rows = new_order.div(beams, rounding_mode="floor")
    if beams == 1 or len(rows) % beams:
        return rows
    groups = rows.view(-1, beams)
    return groups[:, 0] if torch.equal(groups, groups[:, :1].expand_as(groups)) else rows
