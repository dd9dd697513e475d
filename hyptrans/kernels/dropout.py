"""Dropout on the CPU without a stored mask: a hash of place and seed decides what to keep."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from hyptrans.kernels.backend import BLOCK, applied, backend, run
from hyptrans.kernels.cpu import inlined, matrix, read

GOLDEN = 0x9E3779B9
"""2^32 divided by the golden ratio: it spreads the places of a row."""


def relu_dropout(x: Tensor, p: float, *, relu: bool = False, training: bool = True) -> Tensor:
    """Apply dropout with probability ``p`` in training, after ReLU if ``relu``.

    The CPU kernel draws a seed from torch's generator and keeps or drops each number by a hash of
    seed and place, so it keeps other numbers than torch's dropout, which runs everywhere else.

    Raises:
        ValueError: ``p`` is not between 0 and 1.
    """
    if not 0 <= p <= 1:
        raise ValueError(f"a dropout probability must be between 0 and 1, got {p}")
    if not training or p == 0:
        return F.relu(x) if relu else x
    if p == 1 or backend(x) == "eager":
        return F.dropout(F.relu(x) if relu else x, p)
    return applied(_Dropout, x, (*threshold_and_scale(p), relu, drawn_seed()))


def drawn_seed() -> int:
    """Draw a seed for the hashes of dropout from torch's CPU generator."""
    return int(torch.randint(2**63 - 1, (), device="cpu"))


def threshold_and_scale(p: float) -> tuple[int, float]:
    """Return the least hash of a number that dropout keeps, and the factor of kept numbers."""
    return min(round(p * 2**32), 2**32 - 1), 1 / (1 - p)


def dropout(block: int, pointer: Any) -> None:
    """Keep each number of rows ``[N, d]`` whose place has a hash of at least the threshold.

    Matrices: rows, result. Scalars: scale. Integers: seed, threshold, whether ReLU comes first.
    """
    job = read(pointer)
    x, out = matrix(job, 0), matrix(job, 1)
    seed, least, relu = job.integers[0], np.uint32(job.integers[1]), job.integers[2] != 0
    rows, d = x.shape
    zero, scale = x.dtype.type(0), job.scalars[0]
    for n in range(block * BLOCK, min((block + 1) * BLOCK, rows)):
        key = key_of(seed, n)
        for j in range(d):
            value = x[n, j] * scale
            if relu:
                value = max(value, zero) if value == value else value
            kept = kept_at(key, j, least)
            out[n, j] = value if kept else zero


def relu_dropout_backward(block: int, pointer: Any) -> None:
    """Compute the gradient with ReLU: a positive result comes from a positive number that was kept.

    Matrices: gradient, result of :func:`dropout`, gradient of the rows. Scalars: scale.
    """
    job = read(pointer)
    grad, out, grad_x = matrix(job, 0), matrix(job, 1), matrix(job, 2)
    rows, d = grad.shape
    zero, scale = grad.dtype.type(0), job.scalars[0]
    for n in range(block * BLOCK, min((block + 1) * BLOCK, rows)):
        for j in range(d):
            grad_x[n, j] = grad[n, j] * scale if out[n, j] > zero else zero


@inlined
def fill_kept(row: Any, seed: int, n: int, least: np.uint32, scale: float) -> None:
    """Fill a row with the scale of kept numbers, else 0; keep all if the least hash is 0."""
    zero = scale - scale
    if least == np.uint32(0):
        for j in range(row.size):
            row[j] = scale
    else:
        key = key_of(seed, n)
        for j in range(row.size):
            row[j] = scale if kept_at(key, j, least) else zero


@inlined
def key_of(seed: int, row: int) -> np.uint32:
    """Return the start of a row's hashes, which depends on both halves of the seed."""
    return np.uint32(_mix(np.uint32(row) + np.uint32(seed)) ^ np.uint32(seed >> 32))


@inlined
def kept_at(key: np.uint32, column: int, threshold: np.uint32) -> bool:
    """Return whether dropout keeps a number of a row."""
    return bool(_mix(key + np.uint32(column) * np.uint32(GOLDEN)) >= threshold)


@inlined
def _mix(number: int) -> np.uint32:
    """Return a 32-bit hash (lowbias32): each input bit flips about half of the output bits."""
    # without the casts numba would widen the 32 bits
    h = np.uint32(number)
    h = np.uint32(np.uint32(h ^ (h >> np.uint32(16))) * np.uint32(0x7FEB352D))
    h = np.uint32(np.uint32(h ^ (h >> np.uint32(15))) * np.uint32(0x846CA68B))
    return np.uint32(h ^ (h >> np.uint32(16)))


class _Dropout(torch.autograd.Function):
    """Kernels of :func:`relu_dropout`; a seed stands for the mask.

    Its options are dropout's threshold and scale, whether ReLU comes first, and the seed.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, options: tuple[int, float, bool, int]) -> Tensor:
        x, ctx.options = x.contiguous(), options
        out, (threshold, scale, relu, seed) = torch.empty_like(x), options
        run(dropout, (x, out), (scale,), (seed, threshold, relu))
        ctx.save_for_backward(out if relu else None)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        (out,), (threshold, scale, relu, seed) = ctx.saved_tensors, ctx.options
        grad = grad.contiguous()
        grad_x = torch.empty_like(grad)
        if relu:
            run(relu_dropout_backward, (grad, out, grad_x), (scale,))
        else:
            run(dropout, (grad, grad_x), (scale,), (seed, threshold, False))
        return grad_x, None
