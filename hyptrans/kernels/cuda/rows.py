"""One-pass kernels in Triton: what :mod:`~hyptrans.kernels.cpu.rows` is on the CPU.

A program works on ``ROWS`` rows ``[ROWS, WIDTH]`` at a time, ``WIDTH`` the power of two at or above
their length; where a lane lies beyond an edge it reads numbers that make no NaN. Sums over rows go
to one row of ``partial`` per program: no atomics, so that a result never depends on their order.
Numbers that the host knows come in ``numbers`` and not as arguments, which Triton rounds to
float32. Places are counted in 64 bits: a tensor may have more than ``2^31`` numbers.
"""

from typing import Any

import triton  # type: ignore
import triton.language as tl  # type: ignore


@triton.jit
def _lanes(rows: tl.tensor, D: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr) -> Any:
    """Rows, columns and places of a program's numbers, which rows exist, and which numbers do."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, WIDTH)[None, :]
    exists = row < rows
    return row, column, row[:, None] * D + column, exists, exists[:, None] & (column < D)


@triton.jit
def _time_of(value: tl.tensor, column: tl.tensor) -> Any:
    return tl.sum(tl.where(column == 0, value, 0.0), axis=1)


@triton.jit
def _space_product(x: tl.tensor, y: tl.tensor, column: tl.tensor) -> Any:
    return tl.sum(tl.where(column == 0, 0.0, x * y), axis=1)


@triton.jit
def _with_time(time: tl.tensor, space: tl.tensor, column: tl.tensor) -> Any:
    return tl.where(column == 0, time[:, None], space)


@triton.jit
def _linear(
    z: tl.tensor,
    residual: tl.tensor,
    at: tl.tensor,
    column: tl.tensor,
    inside: tl.tensor,
    RESIDUAL_TIME: tl.constexpr,
) -> Any:
    """Rows of a linear map with their residual, and their time coordinates."""
    value = tl.load(z + at, mask=inside, other=0.0)
    if residual is not None:
        added = tl.load(residual + at, mask=inside, other=0.0).to(value.dtype)
        if not RESIDUAL_TIME:
            added = tl.where(column == 0, 0.0, added)
        value += added
    return value, _time_of(value, column)


@triton.jit(do_not_specialize=["rows"])
def points_forward(
    z: tl.tensor,
    residual: tl.tensor,
    numbers: tl.tensor,
    log_scale: tl.tensor,
    factor: tl.tensor,
    out: tl.tensor,
    rows: tl.tensor,
    RESIDUAL_TIME: tl.constexpr,
    PROJECTIONS: tl.constexpr,
    HEADS: tl.constexpr,
    D: tl.constexpr,
    WIDTH: tl.constexpr,
    ROWS: tl.constexpr,
) -> None:
    """``z`` ``[N PROJECTIONS HEADS, D]`` to points; ``residual`` ``[N, D]`` where both are 1.

    ``numbers``: least time, 1/c, epsilon; ``log_scale`` ``[PROJECTIONS]``; with ``factor`` ``[]``
    the points of the first projection are written as ``factor (-t, s)``.
    """
    row, column, at, _, inside = _lanes(rows, D, WIDTH, ROWS)
    value, time = _linear(z, residual, at, column, inside, RESIDUAL_TIME)
    least, inverse_c, epsilon = tl.load(numbers), tl.load(numbers + 1), tl.load(numbers + 2)
    squared = _space_product(value, value, column)
    projection = row // HEADS % PROJECTIONS
    scale = tl.exp(tl.load(log_scale + projection).to(value.dtype))
    reached = scale * tl.sigmoid(time) + least
    ratio = (reached * reached - inverse_c) / (squared + epsilon)
    made, space_scale = tl.sqrt(squared * ratio + inverse_c), tl.sqrt(ratio)
    if factor is not None:
        size = tl.load(factor).to(value.dtype)
        made *= tl.where(projection == 0, -size, 1.0)
        space_scale *= tl.where(projection == 0, size, 1.0)
    tl.store(out + at, _with_time(made, value * space_scale[:, None], column), mask=inside)


@triton.jit(do_not_specialize=["rows", "projection"])
def points_backward(
    grad: tl.tensor,
    z: tl.tensor,
    residual: tl.tensor,
    numbers: tl.tensor,
    log_scale: tl.tensor,
    factor: tl.tensor,
    grad_z: tl.tensor,
    partial: tl.tensor,
    rows: tl.tensor,
    projection: tl.tensor,
    RESIDUAL_TIME: tl.constexpr,
    PROJECTIONS: tl.constexpr,
    HEADS: tl.constexpr,
    D: tl.constexpr,
    WIDTH: tl.constexpr,
    ROWS: tl.constexpr,
) -> None:
    """Gradient of :func:`points_forward` through one projection; ``grad`` ``[N HEADS, D]``.

    ``partial`` ``[programs, 2]``: of the log scale, and of the factor if it is given.
    """
    row, column, given_at, exists, inside = _lanes(rows, D, WIDTH, ROWS)
    # the rows of z have those of the other projections between them
    source = row + (row // HEADS) * ((PROJECTIONS - 1) * HEADS) + projection * HEADS
    at = source[:, None] * D + column
    value, time = _linear(z, residual, at, column, inside, RESIDUAL_TIME)
    given = tl.load(grad + given_at, mask=inside, other=0.0)
    by_made = _time_of(given, column)
    squared = _space_product(value, value, column)
    along = _space_product(value, given, column)
    least, inverse_c, epsilon = tl.load(numbers), tl.load(numbers + 1), tl.load(numbers + 2)
    scale = tl.exp(tl.load(log_scale + projection).to(value.dtype))
    sigmoid = tl.sigmoid(time)
    reached = scale * sigmoid + least
    inverse = 1 / (squared + epsilon)
    ratio = (reached * reached - inverse_c) * inverse
    root, made = tl.sqrt(ratio), tl.sqrt(squared * ratio + inverse_c)
    space_scale = root
    program = partial + tl.program_id(0) * 2
    if factor is not None:
        size = tl.load(factor).to(value.dtype)
        tl.store(program + 1, tl.sum(tl.where(exists, along * root - by_made * made, 0.0), axis=0))
        by_made *= -size
        along *= size
        space_scale *= size
    by_ratio = (along / root + by_made * squared / made) * 0.5
    by_squared = by_made * ratio / made - by_ratio * 2 * ratio * inverse
    by_reached = by_ratio * 2 * reached * inverse * scale * sigmoid
    tl.store(program, tl.sum(tl.where(exists, by_reached, 0.0), axis=0))
    by_time = by_reached * (1 - sigmoid)
    by_space = given * space_scale[:, None] + by_squared[:, None] * value
    tl.store(grad_z + at, _with_time(by_time, by_space, column), mask=inside)


@triton.jit
def _vectors(
    v: tl.tensor,
    c: tl.tensor,
    row: tl.tensor,
    column: tl.tensor,
    at: tl.tensor,
    exists: tl.tensor,
    inside: tl.tensor,
    D: tl.constexpr,
    FLOOR: tl.constexpr,
) -> Any:
    """Rows to normalize, their times, ``|v_s|^2``, ``|v|_L^2`` or its floor, whether that, 1/c."""
    value = tl.load(v + at, mask=inside, other=0.0)
    squares = _space_product(value, value, column)
    # a time of one keeps lanes without a row from dividing zero by zero
    time = tl.load(v + row * D, mask=exists, other=1.0)
    length, least = time * time - squares, FLOOR * time * time
    # written so that a NaN stays one
    floored, length = length <= least, tl.where(length < least, least, length)
    return value, time, squares, length, floored, 1 / tl.load(c).to(value.dtype)


@triton.jit(do_not_specialize=["rows"])
def normalize_forward(
    v: tl.tensor,
    c: tl.tensor,
    out: tl.tensor,
    rows: tl.tensor,
    FLOOR: tl.constexpr,
    D: tl.constexpr,
    WIDTH: tl.constexpr,
    ROWS: tl.constexpr,
) -> None:
    """Rows ``[N, D]`` onto the hyperboloid; ``FLOOR``: relative floor of ``|v|_L^2``."""
    row, column, at, exists, inside = _lanes(rows, D, WIDTH, ROWS)
    value, _, squares, length, _, inverse_c = _vectors(
        v, c, row, column, at, exists, inside, D, FLOOR
    )
    scale = tl.sqrt(inverse_c / length)
    made = tl.sqrt(squares * scale * scale + inverse_c)
    tl.store(out + at, _with_time(made, value * scale[:, None], column), mask=inside)


@triton.jit(do_not_specialize=["rows"])
def normalize_backward(
    grad: tl.tensor,
    v: tl.tensor,
    c: tl.tensor,
    grad_v: tl.tensor,
    partial: tl.tensor,
    rows: tl.tensor,
    FLOOR: tl.constexpr,
    D: tl.constexpr,
    WIDTH: tl.constexpr,
    ROWS: tl.constexpr,
) -> None:
    """Gradient of :func:`normalize_forward`; ``partial`` ``[programs]``: of 1/c."""
    row, column, at, exists, inside = _lanes(rows, D, WIDTH, ROWS)
    value, time, squares, length, floored, inverse_c = _vectors(
        v, c, row, column, at, exists, inside, D, FLOOR
    )
    given = tl.load(grad + at, mask=inside, other=0.0)
    along = _space_product(value, given, column)
    scale = tl.sqrt(inverse_c / length)
    # of the space part: its own gradient and that of the time, which follows from it
    by_made = _time_of(given, column) / tl.sqrt(squares * scale * scale + inverse_c)
    along = along * scale + by_made * squares * scale * scale
    by_inverse = tl.where(exists, (along / inverse_c + by_made) * 0.5, 0.0)
    tl.store(partial + tl.program_id(0), tl.sum(by_inverse, axis=0))
    along /= length
    share = by_made * scale * scale + tl.where(floored, 0.0, along)
    by_time = -tl.where(floored, along * FLOOR, along) * time
    by_space = scale[:, None] * given + share[:, None] * value
    tl.store(grad_v + at, _with_time(by_time, by_space, column), mask=inside)


@triton.jit(do_not_specialize=["rows"])
def lift_forward(
    space: tl.tensor,
    c: tl.tensor,
    out: tl.tensor,
    rows: tl.tensor,
    D: tl.constexpr,
    WIDTH: tl.constexpr,
    ROWS: tl.constexpr,
) -> None:
    """Rows ``[N, D - 1]`` to points ``[N, D]``."""
    row, column, at, _, inside = _lanes(rows, D, WIDTH, ROWS)
    # a row of space coordinates has no time: every row before moves this one by one place
    source = space + at - row[:, None] - 1
    value = tl.load(source, mask=inside & (column > 0), other=0.0)
    time = tl.sqrt(tl.sum(value * value, axis=1) + 1 / tl.load(c).to(value.dtype))
    tl.store(out + at, _with_time(time, value, column), mask=inside)


@triton.jit(do_not_specialize=["rows"])
def lift_backward(
    grad: tl.tensor,
    out: tl.tensor,
    grad_space: tl.tensor,
    partial: tl.tensor,
    rows: tl.tensor,
    D: tl.constexpr,
    WIDTH: tl.constexpr,
    ROWS: tl.constexpr,
) -> None:
    """Gradient of :func:`lift_forward`; ``partial`` ``[programs]``: of 1/c."""
    row, column, at, exists, inside = _lanes(rows, D, WIDTH, ROWS)
    value = tl.load(out + at, mask=inside, other=0.0)
    given = tl.load(grad + at, mask=inside, other=0.0)
    by_time = _time_of(given, column) / tl.load(out + row * D, mask=exists, other=1.0)
    tl.store(partial + tl.program_id(0), tl.sum(by_time, axis=0) * 0.5)
    by_space = given + by_time[:, None] * value
    target = grad_space + at - row[:, None] - 1
    tl.store(target, by_space, mask=inside & (column > 0))


@triton.jit(do_not_specialize=["rows", "low", "high", "threshold"])
def dropout(
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
    if that is given, the result of a ReLU and dropout.
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
        key = _mix(row.to(tl.uint32) + low.to(tl.uint32)) ^ high.to(tl.uint32)
        kept = _mix(key + column.to(tl.uint32) * 0x9E3779B9) >= threshold.to(tl.uint32)
    tl.store(out + at, tl.where(kept, value, 0.0), mask=inside)


@triton.jit
def _mix(h: tl.tensor) -> Any:
    """A hash of 32 bits (lowbias32)."""
    h = (h ^ (h >> 16)) * 0x7FEB352D
    h = (h ^ (h >> 15)) * 0x846CA68B
    return h ^ (h >> 16)
