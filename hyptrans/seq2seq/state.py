"""A decoder's state between steps; hypotheses of a sentence share the part about the source."""

from dataclasses import dataclass, field

from torch import Tensor

from hyptrans.layers.attention import State


@dataclass
class LayerState:
    """A layer's state; cross-attention has one row for all hypotheses of a sentence."""

    attention: State = field(default_factory=State)
    cross_attention: State = field(default_factory=State)


@dataclass
class DecoderState:
    """A decoder's state; all hypotheses share the state of the logits."""

    layers: list[LayerState]
    logits: State = field(default_factory=State)

    def reorder(self, new_order: Tensor, sentences: Tensor | None = None) -> None:
        """Move the state of hypothesis ``new_order[i]`` to place ``i``.

        Args:
            new_order: ``[B']``.
            sentences: rows of the cross-attention's state to keep; None for all of them.
        """
        if self.layers[0].attention.kept is None:
            return
        for layer in self.layers:
            layer.attention.kept = layer.attention.kept.reorder(new_order)
            if sentences is not None:
                layer.cross_attention.kept = layer.cross_attention.kept.reorder(sentences)
