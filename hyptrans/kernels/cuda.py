"""CUDA kernels: imports Triton at the first launch and launches kernels on a tensor's device.

A program works on a tile ``[ROWS, WIDTH]`` of ``ROWS`` rows; ``WIDTH`` is the power of two at or
above their length. Lanes beyond an edge read numbers that give no NaN. A program writes its sums
over rows to its own row of ``partial``: without atomics no result depends on the order of programs.
Host numbers come in a tensor, as Triton would round arguments to float32.
Offsets have 64 bits: a tensor may have more than ``2^31`` numbers.

Nothing here waits for the device, except the first use of a host number, which is copied there
once. ``make test-gpu`` runs the tests on a GPU; otherwise they run in Triton's interpreter.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from hyptrans.geometry.lorentz import CurvatureLike
from hyptrans.kernels.backend import no_second_derivative

if TYPE_CHECKING:
    import triton.language as tl  # type: ignore

TILE = 2048
"""Numbers of each tensor that a program holds at once; more only if a row is longer."""


class Deferred:
    """A function that Triton compiles at the first launch, which also imports Triton."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self.function, self.options = function, options

    @functools.cached_property
    def jitted(self) -> Any:
        """Triton's kernel; making it also sets ``tl`` and the kernels in the function's file."""
        import triton
        import triton.language

        names = self.function.__globals__
        names["tl"] = triton.language
        self.__dict__["jitted"] = made = triton.jit(self.function, **self.options)
        for name, value in list(names.items()):
            if isinstance(value, Deferred):
                names[name] = value.jitted
        return made


def kernel(*do_not_specialize: str) -> Callable[[Any], Any]:
    """Make Triton compile a function at its first launch, with ``tl`` as Triton's language.

    Args:
        do_not_specialize: arguments that change from call to call.
    """
    return lambda function: Deferred(function, {"do_not_specialize": [*do_not_specialize]})


@kernel()
def lanes(rows: tl.tensor, D: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr) -> Any:
    """Return rows, columns and offsets of a program's numbers, and masks of those that exist."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, WIDTH)[None, :]
    exists = row < rows
    return row, column, row[:, None] * D + column, exists, exists[:, None] & (column < D)


@kernel()
def time_of(value: tl.tensor, column: tl.tensor) -> Any:
    """Return the time coordinates of rows."""
    return tl.sum(tl.where(column == 0, value, 0.0), axis=1)


@kernel()
def space_product(x: tl.tensor, y: tl.tensor, column: tl.tensor) -> Any:
    """Return the dot products of the space parts of rows."""
    return tl.sum(tl.where(column == 0, 0.0, x * y), axis=1)


@kernel()
def with_time(time: tl.tensor, space: tl.tensor, column: tl.tensor) -> Any:
    """Return rows with their time coordinates replaced."""
    return tl.where(column == 0, time[:, None], space)


def launch(kernel: Any, grid: tuple[int, ...], like: Tensor, *args: Any, **options: Any) -> None:
    """Run a kernel on a grid of programs on the device of ``like``."""
    if torch.is_grad_enabled():
        raise no_second_derivative()
    kernel = kernel.jitted if isinstance(kernel, Deferred) else kernel
    with torch.cuda.device_of(like):
        kernel[grid](*args, **options)


def launch_rows(kernel: Any, like: Tensor, *args: Any, **options: Any) -> None:
    """Run a kernel on the rows of a tensor ``[..., d]``; their number follows ``args``."""
    width, height = tile(like.size(-1))
    # with eight warps a row of 8192 takes 32 registers per thread for each tensor
    warps = 4 if width <= 2 * TILE else 8 if width <= 4 * TILE else 16
    sizes = {"D": like.size(-1), "WIDTH": width, "ROWS": height, "num_warps": warps}
    launch(kernel, (programs(like),), like, *args, rows_of(like), **options, **sizes)


def tile(columns: int) -> tuple[int, int]:
    """Return the columns and rows of a program's tile."""
    width = 1 << max(0, columns - 1).bit_length()
    return width, max(1, TILE // width)


def rows_of(x: Tensor) -> int:
    """Return the number of rows of a tensor ``[..., d]``."""
    return x.numel() // x.size(-1)


def programs(like: Tensor) -> int:
    """Return how many programs :func:`launch_rows` starts."""
    return -(-rows_of(like) // tile(like.size(-1))[1])


def curvature(c: CurvatureLike, like: Tensor) -> Tensor:
    """Return the curvature as a tensor on the device, where a learned one already is."""
    return c.to(like.device) if isinstance(c, Tensor) else device_constants((c,), like)


def device_constants(scalars: tuple[float, ...], like: Tensor) -> Tensor:
    """Return host numbers as a tensor with the dtype and device of ``like``."""
    return _on_device(scalars, like.dtype, like.device)


@functools.lru_cache(maxsize=1024)
def _on_device(scalars: tuple[float, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    # training may need for its gradients what an earlier translation cached in inference mode
    with torch.inference_mode(False):
        return torch.tensor(scalars, dtype=dtype, device=device)
