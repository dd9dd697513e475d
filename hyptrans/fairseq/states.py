"""The states of all layers of an encoder, and the spaces that they are points of."""

from typing import Any

import torch
from torch import Tensor

from hyptrans.geometry.space import Space


def all_states(encoder: Any, tokens: Tensor) -> Tensor:
    """States of every layer, 0 the embeddings with positions and the last the encoder's output.

    Args:
        encoder: fairseq's, or one of this package, in evaluation.
        tokens: ``[B, T]``, padded on either side, with the end of sentence.

    Returns:
        ``[layers + 1, B, T, D]``.
    """
    lengths = tokens.ne(encoder.dictionary.pad()).sum(1)
    with torch.inference_mode():
        out = encoder(tokens, src_lengths=lengths, return_all_hiddens=True)
    # with --encoder-normalize-before the output has one more norm than the last layer's state
    states = [*out["encoder_states"][:-1], out["encoder_out"][0]]
    return torch.stack(states).transpose(1, 2)


def spaces_of(part: Any) -> list[Space]:
    """The space of each state of an encoder or decoder, from the embeddings to the last layer."""
    if hasattr(part, "state_spaces"):
        return list(part.state_spaces())
    return [Space("euclidean")] * (len(part.layers) + 1)
