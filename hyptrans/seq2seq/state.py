"""What a decoder keeps between steps; hypotheses of one sentence share what is computed of it."""

from dataclasses import dataclass, field

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

    def reorder(self, new_order: Tensor, sentences: Tensor | None = None) -> None:
        """Let hypothesis ``i`` be what ``new_order[i]`` was.

        Args:
            new_order: ``[B']``.
            sentences: row of the cross-attention's state for each that is left of it; None where
                all stay as they are.
        """
        if self.layers[0].attention.kept is None:
            return
        for layer in self.layers:
            layer.attention.kept = layer.attention.kept.reorder(new_order)
            if sentences is not None:
                layer.cross_attention.kept = layer.cross_attention.kept.reorder(sentences)
