"""Linear attention with focused features: one formula in three forms.

    Z_i = phi(q_i) (sum_j phi(k_j)^T v_j) / (phi(q_i) . sum_j phi(k_j))

``j`` runs over all positions, or over those up to ``i`` (causal). The functions take ``phi(.)``,
the positive :func:`hyptrans.kernels.linear_attention.features`. A key whose features are zero takes
no part; this leaves padding out. Shapes: query and key ``[B, H, T, d]``, value ``[B, H, T, e]``
-> ``[B, H, T, e]``.

:func:`quadratic` computes the formula as written, in O(T^2); :func:`summarize` with :func:`read`,
and :func:`causal` for training, take O(T) time and memory;
:func:`hyptrans.kernels.linear_attention.step` decodes one position from sums of a constant size.

Source: Hypformer eq. 16 and 19 (space coordinates only; the values stay raw, as in its code).
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from hyptrans.kernels.linear_attention import ratio

CHUNK = 64
"""Positions whose mutual weights are computed at once, about as many as a head has coordinates:
weights ``[T, CHUNK]`` and sums ``[T / CHUNK, d, e]`` take no more memory than the queries."""


class Sums(NamedTuple):
    """Sums over the keys and values that linear attention has seen."""

    key_value: Tensor
    """``[B, H, d, e]``: sum of ``phi(k_j)^T v_j``."""
    key: Tensor
    """``[B, H, d]``: sum of ``phi(k_j)``."""

    @property
    def rows(self) -> int:
        """Return the number of hypotheses or sentences."""
        return self.key.size(0)

    def reorder(self, order: Tensor) -> "Sums":
        """Return sums whose row ``i`` is row ``order[i]`` of these."""
        return Sums(*(t.index_select(0, order) for t in self))


def quadratic(query: Tensor, key: Tensor, value: Tensor, *, causal: bool = False) -> Tensor:
    """Compute the formula with all weights ``[T, T]`` written out, as reference for other forms.

    Source: Hypformer eq. 16.
    """
    products = _products(query, key, causal=causal)
    return ratio(products @ value, products.sum(-1, keepdim=True))


def weights(query: Tensor, key: Tensor, *, causal: bool = False) -> Tensor:
    """Return the weights of queries on keys, ``[B, H, T, S]``; over the keys they sum to 1."""
    products = _products(query, key, causal=causal)
    return ratio(products, products.sum(-1, keepdim=True))


def _products(query: Tensor, key: Tensor, *, causal: bool) -> Tensor:
    products = query @ key.transpose(-1, -2)
    return products.tril() if causal else products


def summarize(key: Tensor, value: Tensor) -> Sums:
    """Return the sums over all positions."""
    return Sums(key.transpose(-1, -2) @ value, key.sum(-2))


def read(query: Tensor, sums: Sums) -> Tensor:
    """Return the outputs of queries that attend to the summed positions."""
    return ratio(query @ sums.key_value, query @ sums.key.unsqueeze(-1))


def causal(query: Tensor, key: Tensor, value: Tensor, *, chunk: int = CHUNK) -> tuple[Tensor, Sums]:
    """Compute the causal outputs of all positions at once, and the sums over all positions.

    It uses weights within a chunk and running sums between chunks.
    """
    length = query.size(-2)
    chunk = min(chunk, length)
    query, key, value = (_chunks(t, chunk) for t in (query, key, value))  # [B, H, N, C, .]
    own = summarize(key, value)  # [B, H, N, d, e] and [B, H, N, d]
    # sums before each chunk; subtracting from inclusive sums would lose digits to cancellation
    before = Sums(
        *(torch.cat([torch.zeros_like(t[:, :, :1]), t[:, :, :-1]], dim=2).cumsum(2) for t in own)
    )
    weights = (query @ key.transpose(-1, -2)).tril()
    numerator = weights @ value + query @ before.key_value
    denominator = weights.sum(-1, keepdim=True) + query @ before.key.unsqueeze(-1)
    out = ratio(numerator, denominator).flatten(2, 3)[:, :, :length]
    after = Sums(*(b[:, :, -1] + t[:, :, -1] for b, t in zip(before, own, strict=True)))
    return out, after


def _chunks(x: Tensor, chunk: int) -> Tensor:
    """Cut ``[B, H, T, d]`` into ``[B, H, N, chunk, d]``, padded with zeros at the end."""
    missing = -x.size(2) % chunk
    if missing:
        x = F.pad(x, (0, 0, 0, missing))
    return x.unflatten(2, (-1, chunk))
