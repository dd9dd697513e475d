"""What a decoder keeps between steps; hypotheses of one sentence share what is computed of it."""

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from hyptrans.layers.decoding_state import State


@dataclass
class LayerState:
    """What a decoder layer keeps; the cross-attention one row for all hypotheses of a sentence."""

    attention: State = field(default_factory=State)
    cross_attention: State = field(default_factory=State)


@dataclass
class DecoderState:
    """What a decoder keeps between steps; that of the logits is the same for all hypotheses."""

    layers: list[LayerState]
    logits: State = field(default_factory=State)

    def beams(self, memory: Tensor) -> int:
        """Hypotheses to a row of the cross-attention's state, which the first step decides."""
        kept = self.layers[0].cross_attention.kept
        return beams_of(memory) if kept is None else len(memory) // kept.rows

    def reorder(self, new_order: Tensor) -> None:
        """Let hypothesis ``i`` be what ``new_order[i]`` was."""
        first = self.layers[0]
        if first.attention.kept is None:
            return
        sentences = first.cross_attention.kept.rows
        rows = sentence_rows(new_order, first.attention.kept.rows // sentences)
        moved = not torch.equal(rows, torch.arange(sentences, device=rows.device))
        for layer in self.layers:
            layer.attention.kept = layer.attention.kept.reorder(new_order)
            if moved:
                layer.cross_attention.kept = layer.cross_attention.kept.reorder(rows)


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
