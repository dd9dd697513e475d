"""A decoder's state as the library's cache."""

from typing import Any

import torch
from torch import Tensor
from transformers import Cache


class HyptransCache(Cache):
    """What the decoder keeps of the tokens ``[B, T]`` that it has seen.

    Keys and values, or the sums of linear attention, stay as the core keeps them.

    Args:
        state: of the core's decoder, before the first token.
    """

    is_compileable = False
    is_croppable = False

    def __init__(self, state: Any) -> None:
        super().__init__(layers=[])
        self.state = state
        self.tokens: Any = None
        """None before the first."""

    def extended(self, tokens: Tensor) -> Tensor:
        """All tokens, with new ones ``[B, T']``."""
        every = tokens if self.tokens is None else torch.cat([self.tokens, tokens], 1)
        self.tokens = every
        return every

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return 0 if self.tokens is None else self.tokens.size(1)

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Let row ``i`` be what row ``beam_idx[i]``, of the same sentence, was."""
        self.tokens = self.tokens.index_select(0, beam_idx)
        self.state.reorder(beam_idx)
