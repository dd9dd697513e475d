"""Linear attention with focused features: one formula in four forms.

    Z_i = phi(q_i) (sum_j phi(k_j)^T v_j) / (phi(q_i) . sum_j phi(k_j))

``j`` runs over all positions, or over those up to ``i`` (causal); ``phi`` are the positive
:func:`features`. :func:`quadratic` computes the formula as written, in O(T^2); :func:`summarize`
with :func:`from_sums`, and :func:`causal` for training, take O(T) time and memory. These take
``phi(.)``, and a key whose features are zero takes no part; this leaves padding out. Shapes: query
and key ``[B, H, T, d]``, value ``[B, H, T, e]`` -> ``[B, H, T, e]``. :func:`step` decodes one
position from sums of a constant size, on the CPU in one pass.

Source: Hypformer eq. 16 and 19 (space coordinates only; the values stay raw, as in its code).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from hyptrans.geometry.precision import at_least_float32, with_gradient
from hyptrans.kernels.backend import backend, run
from hyptrans.kernels.cpu import inlined, matrix, read

FEATURE_EPSILON = 1e-6
"""Added after ReLU and to the scale, so that a row without positive numbers has features."""
DENOMINATOR_FLOOR = 1e-30
"""A smaller sum of products of features counts as no key seen; the result then tends to zero
instead of 0/0. Sums of keys come near it only if powers of features underflow."""
KERNEL_POWER = 2.0
"""The only power of features that the kernel computes."""
CHUNK = 64
"""Positions whose mutual weights are computed at once, about as many as a head has coordinates:
weights ``[T, CHUNK]`` and sums ``[T / CHUNK, d, e]`` take no more memory than the queries."""


def features(numbers: Tensor, factors: Tensor, power: float) -> Tensor:
    """Return features ``phi``: a power sharpens a vector's direction and keeps its length.

    ``phi = |u| / |u^p| u^p`` with ``u = (ReLU(numbers) + eps) / (softplus(scale) + eps)``.

    Shapes: numbers ``[..., d]``, the :func:`channel_factors` ``1 / (softplus(scale) + eps)``
    broadcast against it -> ``[..., d]``.
    Range: all positive; finite for numbers up to 1e18, also in half precision (float32 inside).
    Source: Hypformer eq. 19; ``scale`` has one number per channel, as a single one would cancel.
    """
    u = (F.relu(at_least_float32(numbers)) + FEATURE_EPSILON) * factors
    return with_gradient(_Sharpened, u, power)


class _Sharpened(torch.autograd.Function):
    """``|u| / |u^p| u^p`` of positive rows; a gradient from the result takes 1/3 of the passes.

    With ``b = g . phi / |u|^2`` the gradient of ``u`` is ``p phi / u (g - b phi) + b u``.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(u: Tensor, power: float) -> Tensor:
        # a row's largest number cancels; dividing by it first keeps the power from overflowing and
        # its length from underflowing
        sharp = (u / u.amax(-1, keepdim=True)).pow(power)
        return sharp * (u.norm(dim=-1, keepdim=True) / sharp.norm(dim=-1, keepdim=True))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, float], output: Tensor) -> None:
        ctx.save_for_backward(inputs[0], output)
        ctx.power = inputs[1]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        u, phi = ctx.saved_tensors
        along = (grad * phi).sum(-1, keepdim=True) / u.square().sum(-1, keepdim=True)
        across = torch.addcmul(grad, along, phi, value=-1)
        return torch.addcmul(along * u, phi / u, across, value=ctx.power), None


def channel_factors(scale: Tensor) -> Tensor:
    """Return the factors by which :func:`features` multiplies channels."""
    return 1 / (F.softplus(at_least_float32(scale)) + FEATURE_EPSILON)


def ratio(numerator: Tensor, denominator: Tensor) -> Tensor:
    """Return ``numerator / denominator``, or about zero where no key was seen."""
    # divide by 1 there, not by the floor, whose inverse would blow up the gradient
    return numerator / denominator.masked_fill(denominator < DENOMINATOR_FLOOR, 1.0)


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

    def reorder(self, order: Tensor) -> Sums:
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


def no_sums(key: Tensor, value: Tensor) -> Sums:
    """Return the sums over no positions: zeros."""
    shape = *key.shape[:2], key.size(-1)
    return Sums(key.new_zeros(*shape, value.size(-1)), key.new_zeros(shape))


def summarize(key: Tensor, value: Tensor) -> Sums:
    """Return the sums over all positions."""
    return Sums(key.transpose(-1, -2) @ value, key.sum(-2))


def from_sums(query: Tensor, sums: Sums) -> Tensor:
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
    near = _products(query, key, causal=True)
    numerator = near @ value + query @ before.key_value
    denominator = near.sum(-1, keepdim=True) + query @ before.key.unsqueeze(-1)
    out = ratio(numerator, denominator).flatten(2, 3)[:, :, :length]
    after = Sums(*(b[:, :, -1] + t[:, :, -1] for b, t in zip(before, own, strict=True)))
    return out, after


def _chunks(x: Tensor, chunk: int) -> Tensor:
    """Cut ``[B, H, T, d]`` into ``[B, H, N, chunk, d]``, padded with zeros at the end."""
    missing = -x.size(2) % chunk
    if missing:
        x = F.pad(x, (0, 0, 0, missing))
    return x.unflatten(2, (-1, chunk))


def step(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_value: Tensor,
    key_sum: Tensor,
    factors: Tensor,
    psi: Tensor,
    power: float,
    allowed: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Add one position to the sums of linear attention; return its ``Z + psi(V)`` and new sums.

    Shapes: query, key, value ``[B, H, 1, .]`` before the features, sums ``[B, H, d, e]`` and
    ``[B, H, d]``, channel factors ``[H, 1, d]``, psi ``[H, e, e]``, allowed ``[B, 1, 1, 1]``, false
    where the position is padding -> ``[B, H, 1, e]`` and new sums.
    Source: Hypformer eq. 15, 16 and 18.
    """
    psi = at_least_float32(psi)
    known = power == KERNEL_POWER and query.dtype == psi.dtype and query.size(-1) == psi.size(-1)
    known = known and allowed is None
    if torch.is_grad_enabled() or not known or backend(query) == "eager":
        query, key = features(query, factors, power), features(key, factors, power)
        key = key if allowed is None else key * allowed
        key_value = key_value + key.transpose(-1, -2) * value
        key_sum = key_sum + key.squeeze(-2)
        mixed = ratio(query @ key_value, query @ key_sum.unsqueeze(-1))
        return mixed + value @ psi, key_value, key_sum
    batch, heads = query.shape[:2]
    out = query.new_empty(batch, 1, heads, value.size(-1))
    after, keys_after = torch.empty_like(key_value), torch.empty_like(key_sum)
    given = (t.contiguous() for t in (query, key, value, key_value, key_sum, factors, psi))
    matrices, scalars = (after, keys_after, *given, out), (FEATURE_EPSILON, DENOMINATOR_FLOOR)
    run(step_kernel, matrices, scalars, (heads,), blocks=batch)
    return out.transpose(1, 2), after, keys_after


def step_kernel(block: int, pointer: Any) -> None:
    """Compute one more position of linear attention with power 2; a block is one hypothesis.

    Matrices: new sums ``[B H d, d]`` and ``[B H, d]``; queries, keys and values ``[B H, d]``; old
    sums; channel factors ``[H, d]``; psi ``[H d, d]``; outputs ``[B H, d]``.
    Scalars: the number added to ReLU, the least divisor. Integers: H.
    """
    job = read(pointer)
    after, keys_after = matrix(job, 0), matrix(job, 1)
    queries, keys, values = matrix(job, 2), matrix(job, 3), matrix(job, 4)
    before, keys_before = matrix(job, 5), matrix(job, 6)
    factors, psi, answers = matrix(job, 7), matrix(job, 8), matrix(job, 9)
    heads, d, one = job.integers[0], keys_after.shape[1], answers.dtype.type(1)
    query_features, key_features = np.empty((2, d), answers.dtype)
    for h in range(heads):
        row = block * heads + h
        value = values[row]
        _features(queries[row], factors[h], job.scalars[0], query_features)
        _features(keys[row], factors[h], job.scalars[0], key_features)
        total = one - one
        for i in range(d):
            keys_after[row, i] = keys_before[row, i] + key_features[i]
            total += query_features[i] * keys_after[row, i]
        share, answer = one / (one if total < job.scalars[1] else total), answers[row]
        answer[:] = one - one
        for i in range(d):
            of_key, old, new = key_features[i], before[row * d + i], after[row * d + i]
            of_sum, of_value, mapped = query_features[i] * share, value[i], psi[h * d + i]
            for j in range(value.size):
                new[j] = old[j] + of_key * value[j]
                answer[j] += of_sum * new[j] + of_value * mapped[j]


@inlined
def _features(given: Any, factors: Any, epsilon: float, out: Any) -> None:
    """Compute :func:`features` with power 2 of one head's row."""
    zero, one, d = out.dtype.type(0), out.dtype.type(1), out.size
    squared, sharp = zero, zero
    for j in range(d):
        out[j] = ((zero if given[j] < zero else given[j]) + epsilon) * factors[j]
    for j in range(d):
        squared += out[j] * out[j]
    inverse = one / squared
    for j in range(d):
        out[j] *= out[j] * inverse
    for j in range(d):
        sharp += out[j] * out[j]
    scale = math.sqrt(squared / sharp)
    for j in range(d):
        out[j] *= scale
