"""A kernel's call as one piece of memory, so that any thread can work off blocks of it.

A job names a kernel, its matrices and its numbers. Threads claim its blocks one by one until none
is left (:func:`work_off`); whoever comes late finds nothing to do.
"""

import ctypes
import functools
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from llvmlite import ir
from numba import carray, cfunc, from_dtype, njit, types
from numba.extending import intrinsic
from torch import Tensor

from hyptrans.kernels import threads

MATRICES, INTEGERS, NUMBERS = 10, 4, 4
"""How many of each a job has room for."""

Kernel = Callable[[int, Any], None]
"""Computes one block of a job; what belongs to other blocks is not its business."""

_FLOATS = {torch.float32: ("f", np.float32), torch.float64: ("d", np.float64)}
_HEAD = f"3q {MATRICES}Q {MATRICES}q {MATRICES}q {INTEGERS}q"


def _layout(number: type[np.floating]) -> np.dtype:
    fields = [
        ("kernel", np.int64),
        ("next", np.int64),
        ("blocks", np.int64),
        ("address", np.uint64, MATRICES),
        ("rows", np.int64, MATRICES),
        ("columns", np.int64, MATRICES),
        ("integers", np.int64, INTEGERS),
        ("numbers", number, NUMBERS),
    ]
    return np.dtype(fields, align=True)


def run(
    kernel: Kernel,
    blocks: int,
    matrices: Sequence[Tensor | None],
    numbers: Sequence[float] = (),
    integers: Sequence[int] = (),
) -> None:
    """Let threads compute all blocks; the first matrix says how much work that is.

    Args:
        kernel: compiled at its first call for a dtype, and kept in numba's cache.
        blocks: how many there are.
        matrices: contiguous tensors of one dtype, each seen as rows of its last dimension.
        numbers: of the same dtype once the kernel reads them.
        integers: signed, of 64 bits.
    """
    largest = matrices[0]
    assert largest is not None, "a job has work"
    code, number = _FLOATS[largest.dtype]
    rows, columns = zip(*(_shape(matrix) for matrix in matrices), strict=True)
    addresses = [0 if matrix is None else matrix.data_ptr() for matrix in matrices]
    head = (
        *(_compiled(kernel, number), 0, blocks),
        *_filled(addresses, MATRICES),
        *_filled(rows, MATRICES),
        *_filled(columns, MATRICES),
        *_filled(integers, INTEGERS),
    )
    packed = struct.pack(_HEAD + f"{NUMBERS}{code}", *head, *_filled(numbers, NUMBERS))
    job = ctypes.create_string_buffer(packed, len(packed))
    threads.share(_driver(), ctypes.addressof(job), blocks, largest.numel())


def _shape(matrix: Tensor | None) -> tuple[int, int]:
    if matrix is None:
        return 0, 0
    columns = matrix.size(-1) if matrix.dim() else 1
    return matrix.numel() // columns, columns


def _filled(values: Sequence[Any], length: int) -> tuple[Any, ...]:
    return (*values, *(0,) * (length - len(values)))


@functools.cache
def _compiled(kernel: Kernel, number: type[np.floating]) -> int:
    # "reassoc" and the like, but not "nnan" and "ninf": a NaN must stay one, to be seen
    flags = {"reassoc", "nsz", "arcp", "contract", "afn"}
    signature = types.void(types.int64, types.CPointer(from_dtype(_layout(number))))
    made = cfunc(signature, cache=True, fastmath=flags)(kernel)
    _kept_alive.append(made)
    return int(made.address)


@functools.cache
def _driver() -> int:
    made = cfunc(types.void(types.voidptr), cache=True)(work_off)
    _kept_alive.append(made)
    return int(made.address)


_kept_alive: list[Any] = []


def work_off(job: Any) -> None:
    """Compute blocks of a job until all are claimed."""
    block = _claim(job)
    while block < _blocks(job):
        _compute(job, block)
        block = _claim(job)


@intrinsic
def _claim(_context: Any, job: Any) -> Any:
    """The next block, which from now on is nobody else's."""

    def generate(_: Any, builder: Any, __: Any, args: Any) -> Any:
        place = builder.gep(_integers(builder, args[0]), [ir.Constant(ir.IntType(32), 1)])
        return builder.atomic_rmw("add", place, ir.Constant(ir.IntType(64), 1), "monotonic")

    return types.int64(types.voidptr), generate


@intrinsic
def _blocks(_context: Any, job: Any) -> Any:
    def generate(_: Any, builder: Any, __: Any, args: Any) -> Any:
        integers = _integers(builder, args[0])
        return builder.load(builder.gep(integers, [ir.Constant(ir.IntType(32), 2)]))

    return types.int64(types.voidptr), generate


@intrinsic
def _compute(_context: Any, job: Any, block: Any) -> Any:
    """Call the job's kernel."""

    def generate(_: Any, builder: Any, __: Any, args: Any) -> Any:
        job, block = args
        signature = ir.FunctionType(ir.VoidType(), [ir.IntType(64), job.type])
        address = builder.load(_integers(builder, job))
        builder.call(builder.inttoptr(address, signature.as_pointer()), [block, job])

    return types.void(types.voidptr, types.int64), generate


def _integers(builder: Any, job: Any) -> Any:
    return builder.bitcast(job, ir.IntType(64).as_pointer())


@njit(inline="always")
def read(pointer: Any) -> Any:
    """The job at an address, in a kernel."""
    return carray(pointer, 1)[0]


@njit(inline="always")
def matrix(job: Any, i: int) -> Any:
    """A job's matrix as an array ``[rows, columns]``, in a kernel."""
    return carray(_pointer(job.address[i], job.numbers[0]), (job.rows[i], job.columns[i]))


@intrinsic
def _pointer(_context: Any, address: Any, number: Any) -> Any:
    """An address as that of numbers of the type of ``number``."""
    pointer = types.CPointer(number)

    def generate(context: Any, builder: Any, _: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], context.get_value_type(pointer))

    return pointer(address, number), generate
