"""Encode a source by itself, as ``generate`` asks for, and read vectors in place of tokens."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers.modeling_outputs import BaseModelOutput

from hyptrans.support.errors import UserError


@dataclass
class EncoderOutput(BaseModelOutput):
    """The encoder's states and where its padding is.

    Attributes:
        padding: ``[B, S]``, true at padding.
    """

    padding: Tensor | None = None


class Encode:
    """The encoder of a model, as ``generate`` calls it."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        inputs_embeds: Tensor | None = None,
        **_: Any,
    ) -> EncoderOutput:
        """Return the encoder's last states ``[B, S, D]``; see the model's own ``forward``.

        Raises:
            UserError: there is no source.
        """
        if inputs_embeds is not None:
            input_ids = self.model.stand_in(input_ids, inputs_embeds)
        if input_ids is None:
            raise UserError("a model needs input_ids: name them, or encoder_outputs")
        tokens, encoder = self.model.padded(input_ids, attention_mask), self.model.encoder
        weights = None
        with embedded(encoder.embed_tokens, inputs_embeds):
            if output_attentions:
                (_, states, padding), weights = encoder.attentions(tokens)
            elif output_hidden_states:
                _, states, padding = encoder(tokens)
            else:
                memory, padding = encoder.memory(tokens)
                states = [memory]
        return EncoderOutput(
            states[-1],
            hidden_states=of_each(states if output_hidden_states else None),
            attentions=of_each(weights),
            padding=padding,
        )

    __call__ = forward


@contextmanager
def embedded(table: torch.nn.Module, vectors: Tensor | None) -> Iterator[None]:
    """Make a table return ``vectors`` for any tokens; if None, it returns its own."""
    if vectors is None:
        yield
        return
    hook = table.register_forward_hook(lambda *_: vectors)
    try:
        yield
    finally:
        hook.remove()


def of_each(found: Sequence[Tensor] | None, count: int = 0) -> tuple[Tensor, ...] | None:
    """Return each layer's states or weights at the last ``count`` positions; 0 means all."""
    return None if found is None else tuple(one[..., -count:, :] for one in found)
