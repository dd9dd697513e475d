"""A decoder's state as a cache of the library transformers."""

from typing import Any

import torch
from torch import Tensor
from transformers import Cache


class HyptransCache(Cache):
    """The tokens ``[B, T]`` that the decoder has seen, and what it keeps of them.

    Keys and values, or the sums of linear attention, stay in ``state``, which the core's decoder
    made before the first token.
    """

    is_compileable = False
    is_croppable = False

    def __init__(self, state: Any) -> None:
        super().__init__(layers=[])
        self.state = state
        self.tokens: Any = None
        """The tokens so far; None before the first."""

    def extended(self, tokens: Tensor) -> Tensor:
        """Append new tokens ``[B, T']`` and return all tokens."""
        self.tokens = tokens if self.tokens is None else torch.cat([self.tokens, tokens], 1)
        return self.tokens

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return 0 if self.tokens is None else self.tokens.size(1)

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Move row ``beam_idx[i]``, of the same sentence, to row ``i``."""
        self.tokens = self.tokens.index_select(0, beam_idx)
        self.state.reorder(beam_idx)
