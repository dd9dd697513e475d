"""Dropout that stores no mask: a hash of place and seed decides which numbers are kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from hyptrans.geometry.precision import at_least_float32
from hyptrans.kernels import cuda
from hyptrans.kernels.cpu import BLOCK, blocks_of, inlined, matrix, read, run
from hyptrans.kernels.operator import Case, Draw, Grads, Kept, Kernels, Made, Operator

if TYPE_CHECKING:
    import triton.language as tl  # type: ignore

COLUMNS = 1024
"""Columns of a tile on CUDA at most, so that rows of attention weights may be of any length."""
GOLDEN = 0x9E3779B9
"""2^32 divided by the golden ratio: it spreads the places of a row."""
_32_BITS = 0xFFFFFFFF


def relu_dropout(x: Tensor, p: float, *, relu: bool = False, training: bool = True) -> Tensor:
    """Dropout with probability ``p`` in training, after ReLU where asked for.

    The kernels draw one number of torch's generator as a seed and keep or drop by a hash of the
    seed and the place; the numbers that they keep differ from those of torch's dropout. A CUDA
    graph would repeat the seed, so torch's dropout is what becomes part of one.

    Raises:
        ValueError: ``p`` is not between 0 and 1.
    """
    if not 0 <= p <= 1:
        raise ValueError(f"a dropout probability must be between 0 and 1, got {p}")
    if not training or p == 0:
        return F.relu(x) if relu else x
    backend = "eager" if p == 1 else RELU_DROPOUT.backend(x)
    if backend == "eager" or (backend == "triton" and cuda.is_captured()):
        return F.dropout(F.relu(x) if relu else x, p)
    made: Tensor = RELU_DROPOUT.run(backend, x, p, relu, drawn_seed())
    return made


def drawn_seed() -> int:
    """A seed for the hashes of dropout, drawn by torch's generator of the CPU."""
    return int(torch.randint(2**63 - 1, (), device="cpu"))


def threshold_and_scale(p: float) -> tuple[int, float]:
    """The least hash of a number that dropout keeps, and the factor of such a number."""
    return min(round(p * 2**32), 2**32 - 1), 1 / (1 - p)


def plain_relu_dropout(x: Tensor, p: float, relu: bool, seed: int) -> Tensor:
    """Dropout by the hashes of a seed, in plain torch."""
    factors = kept_factors(x, p, seed)
    return torch.where(factors > 0, (F.relu(x) if relu else x) * factors, 0)


def kept_factors(like: Tensor, p: float, seed: int) -> Tensor:
    """The factor of each number that dropout keeps, 0 for each other number.

    Shapes: ``[..., d]`` -> ``[..., d]``.
    """
    threshold, scale = threshold_and_scale(p)
    columns = like.size(-1)
    row = torch.arange(like.numel() // max(1, columns), device=like.device).unsqueeze(-1)
    column = torch.arange(columns, device=like.device)
    key = _plain_mix((row + seed) & _32_BITS) ^ (seed >> 32)
    # made negative to fit 32 bits with a sign, in which compiled code may count columns
    hashes = _plain_mix((key + column * (GOLDEN - 2**32)) & _32_BITS)
    return ((hashes >= threshold).to(like.dtype) * scale).view_as(like)


def _plain_mix(h: Tensor) -> Tensor:
    h = ((h ^ (h >> 16)) * 0x7FEB352D) & _32_BITS
    h = ((h ^ (h >> 15)) * 0x846CA68B) & _32_BITS
    return h ^ (h >> 16)


def dropout(block: int, pointer: Any) -> None:
    """Keep a number of rows ``[N, d]`` where the hash of its place is at least the threshold.

    Matrices: rows, what is kept. Scalars: scale. Integers: seed, threshold, whether ReLU is first.
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
    """Gradient with ReLU: a positive result was a positive number, and kept.

    Matrices: gradient, what came out, gradient of the rows. Scalars: scale.
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
    """The scale where numbers of a row are kept, else 0; all of them where the least hash is 0."""
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
    """The start of the hashes of a row; both halves of the seed enter."""
    return np.uint32(_mix(np.uint32(row) + np.uint32(seed)) ^ np.uint32(seed >> 32))


@inlined
def kept_at(key: np.uint32, column: int, threshold: np.uint32) -> bool:
    """Whether a number of a row is kept."""
    return bool(_mix(key + np.uint32(column) * np.uint32(0x9E3779B9)) >= threshold)


@inlined
def _mix(number: int) -> np.uint32:
    """A hash of 32 bits (lowbias32): every bit of the input moves about half of the output's."""
    # the casts keep 32 bits, which numba would widen
    h = np.uint32(number)
    h = np.uint32(np.uint32(h ^ (h >> np.uint32(16))) * np.uint32(0x7FEB352D))
    h = np.uint32(np.uint32(h ^ (h >> np.uint32(15))) * np.uint32(0x846CA68B))
    return np.uint32(h ^ (h >> np.uint32(16)))


def _forward(x: Tensor, p: float, relu: bool, seed: int) -> tuple[Made, Kept]:
    x = x.contiguous()
    out, (threshold, scale) = torch.empty_like(x), threshold_and_scale(p)
    run(dropout, blocks_of(x), (x, out), (scale,), (seed, threshold, relu))
    return out, (out if relu else None, p, seed)


def _backward(kept: Kept, grad: Tensor) -> Grads:
    made, p, seed = kept
    if made is None:
        return (_forward(grad, p, False, seed)[0],)  # type: ignore
    grad = grad.contiguous()
    grad_x = torch.empty_like(grad)
    scale = threshold_and_scale(p)[1]
    run(relu_dropout_backward, blocks_of(grad), (grad, made, grad_x), (scale,))
    return (grad_x,)


@cuda.kernel("rows", "low", "high", "threshold")
def dropout_cuda(
    x: tl.tensor,
    made: tl.tensor,
    numbers: tl.tensor,
    out: tl.tensor,
    rows: tl.tensor,
    columns: tl.tensor,
    low: tl.tensor,
    high: tl.tensor,
    threshold: tl.tensor,
    RELU: tl.constexpr,
    WIDTH: tl.constexpr,
    ROWS: tl.constexpr,
) -> None:
    """Rows ``[N, columns]`` times ``numbers[0]``, or zero.

    Kept is where numba's hash of the place is at least ``threshold``, or where ``made`` is positive
    if that is given, the result of a ReLU and dropout_cuda.
    """
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)[None, :]
    at, inside = row * columns + column, (row < rows) & (column < columns)
    scale = tl.load(numbers)
    value = tl.load(x + at, mask=inside, other=0.0).to(scale.dtype) * scale
    if RELU:
        value = tl.where(value < 0, 0.0, value)
    if made is not None:
        kept = tl.load(made + at, mask=inside, other=0.0) > 0
    else:
        key = _mix_cuda(row.to(tl.uint32) + low.to(tl.uint32)) ^ high.to(tl.uint32)
        kept = _mix_cuda(key + column.to(tl.uint32) * 0x9E3779B9) >= threshold.to(tl.uint32)
    tl.store(out + at, tl.where(kept, value, 0.0), mask=inside)


@cuda.kernel()
def _mix_cuda(h: tl.tensor) -> Any:
    """A hash of 32 bits (lowbias32)."""
    h = (h ^ (h >> 16)) * 0x7FEB352D
    h = (h ^ (h >> 15)) * 0x846CA68B
    return h ^ (h >> 16)


def _forward_cuda(x: Tensor, p: float, relu: bool, seed: int) -> tuple[Made, Kept]:
    x = x.contiguous()
    out = _dropped(x, None, p, relu, seed)
    return out, (out if relu else None, p, seed)


def _backward_cuda(kept: Kept, grad: Tensor) -> Grads:
    made, p, seed = kept
    return (_dropped(grad.contiguous(), made, p, False, seed),)


def _dropped(x: Tensor, made: Tensor | None, p: float, relu: bool, seed: int) -> Tensor:
    threshold, scale = threshold_and_scale(p)
    out, columns = torch.empty_like(x), x.size(-1)
    count, (width, height) = x.numel() // columns, cuda.tile(columns, COLUMNS)
    bits = [_signed(number) for number in (seed & _32_BITS, seed >> 32, threshold)]
    # the dtype of the scale is that of the arithmetic
    scales = cuda.device_constants((scale,), at_least_float32(x[:0]))
    grid = (-(-count // height), -(-columns // width))
    args = (x, made, scales, out, count, columns, *bits)
    cuda.launch(dropout_cuda, grid, x, *args, RELU=relu, WIDTH=width, ROWS=height)
    return out


def _signed(bits: int) -> int:
    """The same 32 bits as a signed number: every seed makes arguments of one type."""
    return bits - 2**32 if bits >= 2**31 else bits


def _cases(draw: Draw) -> Iterator[Case]:
    yield "dropout", (draw.rows(), 0.25, False, 2**40 + 1)
    yield "dropout after ReLU", (draw.rows(), 0.25, True, 2**63 - 2)


RELU_DROPOUT = Operator(
    "dropout",
    plain_relu_dropout,
    cases=_cases,
    cpu=Kernels(_forward, _backward),
    cuda=Kernels(_forward_cuda, _backward_cuda),
    half=True,
)
