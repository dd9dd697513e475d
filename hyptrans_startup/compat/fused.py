"""Functions in place of fairseq's that TorchScript compiles.

So annotations use `Optional`, and every argument has a name.
"""

import math
from typing import Any, Optional

import torch
from torch import Tensor


def encoder_layer(
    src: Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    norm_weight_2: Tensor,
    norm_bias_2: Tensor,
    ffn_weight_1: Tensor,
    ffn_bias_1: Tensor,
    ffn_weight_2: Tensor,
    ffn_bias_2: Tensor,
    mask: Optional[Tensor],
) -> Tensor:
    """Call torch's ``_transformer_encoder_layer_fwd`` with the kind of the mask, padding [B, T]."""
    mask_type: Optional[int] = None
    if mask is not None and mask.dim() == 2 and mask.shape == src.shape[:2]:
        mask_type = 1  # padding
    return torch._transformer_encoder_layer_fwd(
        src,
        embed_dim,
        num_heads,
        qkv_weight,
        qkv_bias,
        proj_weight,
        proj_bias,
        use_gelu,
        norm_first,
        eps,
        norm_weight_1,
        norm_bias_1,
        norm_weight_2,
        norm_bias_2,
        ffn_weight_1,
        ffn_bias_1,
        ffn_weight_2,
        ffn_bias_2,
        mask,
        mask_type,
    )


def _no_repeat_ngram(
    self: Any, tokens: Tensor, lprobs: Tensor, bsz: int, beam_size: int, step: int
) -> Tensor:
    """Give no score to a token that ends an n-gram which a hypothesis has already.

    Args:
        self: fairseq's NGramRepeatBlock.
        tokens: hypotheses [B, longest + 2]: the end of a sentence, `step` tokens, padding.
        lprobs: scores [B, V] of the next token, which are changed.
        bsz: sentences.
        beam_size: hypotheses of each.
        step: tokens so far.
    """
    there = tokens.cpu()
    for row in range(bsz * beam_size):
        words: list[int] = there[row, 1 : step + 1].tolist()
        start = len(words) - self.no_repeat_ngram_size + 1
        for i in range(start):
            if words[i : i + self.no_repeat_ngram_size - 1] == words[start:]:
                lprobs[row, words[i + self.no_repeat_ngram_size - 1]] = -math.inf
    return lprobs
