"""The state of a decoder between steps; hypotheses of one sentence share that of their source."""

from dataclasses import dataclass, field

from torch import Tensor

from hyptrans.layers.attention import State


@dataclass
class LayerState:
    """The state of a layer; cross-attention has one row for all hypotheses of a sentence."""

    attention: State = field(default_factory=State)
    cross_attention: State = field(default_factory=State)


@dataclass
class DecoderState:
    """The state of a decoder; all hypotheses share that of the logits."""

    layers: list[LayerState]
    logits: State = field(default_factory=State)

    def reorder(self, new_order: Tensor, sentences: Tensor | None = None) -> None:
        """Let hypothesis ``i`` be what ``new_order[i]`` was.

        Args:
            new_order: ``[B']``.
            sentences: rows of the cross-attention's state that stay; None for all of them.
        """
        if self.layers[0].attention.kept is None:
            return
        for layer in self.layers:
            layer.attention.kept = layer.attention.kept.reorder(new_order)
            if sentences is not None:
                layer.cross_attention.kept = layer.cross_attention.kept.reorder(sentences)
