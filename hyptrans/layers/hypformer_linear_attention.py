"""Linear attention with focused features: one formula in three forms.

    Z_i = phi(q_i) (sum_j phi(k_j)^T v_j) / (phi(q_i) . sum_j phi(k_j))

``j`` runs over all positions, or over those up to ``i`` (causal). The functions take ``phi(.)``,
the :func:`hyptrans.kernels.linear_attention.features`, all positive; a key whose features are zero
takes no part, which is how padding is left out. Shapes: query and key ``[B, H, T, d]``, value
``[B, H, T, e]`` -> ``[B, H, T, e]``.

:func:`quadratic` is the formula as it stands, in O(T^2); :func:`summarize` with :func:`read`, and
:func:`causal` for training, take O(T) time and memory;
:func:`hyptrans.kernels.linear_attention.step` decodes one position from sums of a constant size.

Source: Hypformer eq. 16 and 19 (space coordinates only; the values stay raw, as in its code).
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from hyptrans.kernels.linear_attention import ratio

CHUNK = 64
"""Positions whose mutual weights are computed at once: as many as a head has coordinates, about, so
that weights ``[T, CHUNK]`` and sums ``[T / CHUNK, d, e]`` take no more room than the queries."""


class Sums(NamedTuple):
    """What linear attention remembers of the keys and values it has seen."""

    key_value: Tensor
    """``[B, H, d, e]``: sum of ``phi(k_j)^T v_j``."""
    key: Tensor
    """``[B, H, d]``: sum of ``phi(k_j)``."""

    @property
    def rows(self) -> int:
        """How many hypotheses or sentences."""
        return self.key.size(0)

    def reorder(self, order: Tensor) -> "Sums":
        """Row ``i`` of the result is row ``order[i]``."""
        return Sums(*(t.index_select(0, order) for t in self))


def quadratic(query: Tensor, key: Tensor, value: Tensor, *, causal: bool = False) -> Tensor:
    """The formula with all weights written out, ``[T, T]``: the reference of the other forms.

    Source: Hypformer eq. 16.
    """
    products = _products(query, key, causal=causal)
    return ratio(products @ value, products.sum(-1, keepdim=True))


def weights(query: Tensor, key: Tensor, *, causal: bool = False) -> Tensor:
    """The weights of queries on keys, whose sum over the keys is 1: ``[B, H, T, S]``."""
    products = _products(query, key, causal=causal)
    return ratio(products, products.sum(-1, keepdim=True))


def _products(query: Tensor, key: Tensor, *, causal: bool) -> Tensor:
    products = query @ key.transpose(-1, -2)
    return products.tril() if causal else products


def summarize(key: Tensor, value: Tensor) -> Sums:
    """Sums over all positions."""
    return Sums(key.transpose(-1, -2) @ value, key.sum(-2))


def read(query: Tensor, sums: Sums) -> Tensor:
    """What queries get from sums."""
    return ratio(query @ sums.key_value, query @ sums.key.unsqueeze(-1))


def causal(query: Tensor, key: Tensor, value: Tensor, *, chunk: int = CHUNK) -> tuple[Tensor, Sums]:
    """All positions at once: their outputs, and the sums over all of them.

    Within a chunk by weights, between chunks by running sums.
    """
    length = query.size(-2)
    chunk = min(chunk, length)
    query, key, value = (_chunks(t, chunk) for t in (query, key, value))  # [B, H, N, C, .]
    own = summarize(key, value)  # [B, H, N, d, e] and [B, H, N, d]
    # what each chunk finds; subtracting from inclusive sums would cancel digits
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
    """``[B, H, T, d]`` -> ``[B, H, N, chunk, d]``, with zeros after the end."""
    missing = -x.size(2) % chunk
    if missing:
        x = F.pad(x, (0, 0, 0, missing))
    return x.unflatten(2, (-1, chunk))
