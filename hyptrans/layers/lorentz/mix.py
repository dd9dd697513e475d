"""Attention between points of the hyperboloid: what mixes the values, whatever made the points."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hyptrans.geometry import lorentz
from hyptrans.geometry.precision import full_precision, half_in_force
from hyptrans.kernels import few_queries
from hyptrans.kernels.hyperboloid import normalize
from hyptrans.kernels.weights import one_mask
from hyptrans.layers.attention import Attention
from hyptrans.layers.decoding_state import Memory, Past, as_table
from hyptrans.layers.lorentz import half_attention


def lorentz_mix(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    c: lorentz.CurvatureLike,
    allowed: Tensor | None,
    is_causal: bool,
    half: torch.dtype | None = None,
) -> Tensor:
    """Centroids of the values, weighted by ``softmax(-d2(q, key) / tau)``.

    The query comes as ``(-q_t, q_s) 2 / tau``: as ``-d2 = 2/c + 2 <q, k>`` and softmax drops
    constants, the weights are those of ordinary attention between it and ``k``; and as the centroid
    does not depend on the scale of its weights, it is the ordinary output, normalized. So torch's
    fused attention computes both exactly; in ``half`` precision, where that is given and queries
    are more than a few, as :mod:`hyptrans.layers.lorentz.half_attention` does.

    Shapes: as :meth:`hyptrans.layers.attention.Attention.mix`. Source: HyboNet eq. 4 and 5.
    """
    allowed, is_causal = one_mask(key, allowed, is_causal)
    if not is_causal and (table := as_table(query, key, value, allowed, few_queries.CENTROIDS)):
        return few_queries.centroids(query, *table, c=c)
    with full_precision(query):
        if half is None or query.size(2) <= few_queries.FEW_QUERIES:
            mixed = F.scaled_dot_product_attention(
                query, key, value, attn_mask=allowed, is_causal=is_causal, scale=1.0
            )
        else:
            mixed = half_attention.mix(
                query, key, value, dtype=half, c=c, allowed=allowed, is_causal=is_causal
            )
        # fused attention writes [B, T, H, d]: normalized as it lies, heads are merged for free
        return normalize(mixed.transpose(1, 2), c=c).transpose(1, 2)


def lorentz_mix_past(query: Tensor, past: Past | Memory, *, c: lorentz.CurvatureLike) -> Tensor:
    """:func:`lorentz_mix` for one query a hypothesis."""
    if isinstance(past, Past) and few_queries.in_one_pass(query, few_queries.CENTROIDS):
        tables = past.tables
        return few_queries.centroids(query, tables.keys, tables.values, past.places, c=c)
    return lorentz_mix(query, *past.gather(), c=c, allowed=None, is_causal=False)


class PointAttention(Attention):
    """Attention whose heads are points of one curvature, mixed by :func:`lorentz_mix`.

    Attributes:
        c: the hyperboloid has curvature ``-c``.
        tau: what squared distances are divided by.
        half_precision: see :class:`hyptrans.layers.hybonet.LorentzAttention`.
    """

    c: float
    tau: nn.Parameter
    half_precision: bool

    def mix(
        self, query: Tensor, key: Tensor, value: Tensor, *, allowed: Tensor | None, is_causal: bool
    ) -> Tensor:
        half = half_in_force(query, self.tau) if self.half_precision else None
        return lorentz_mix(
            query, key, value, c=self.c, half=half, allowed=allowed, is_causal=is_causal
        )

    def mix_past(self, query: Tensor, past: Past | Memory) -> Tensor:
        return lorentz_mix_past(query, past, c=self.c)
