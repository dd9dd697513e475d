"""Jobs: a kernel call as one piece of memory, so that any thread can compute blocks of it.

A job names a kernel, its matrices and its scalars. Threads claim its blocks one by one until none
is left (:func:`work_off`); late threads find nothing to do. :func:`run` writes a job, and compiled
code reads it in place:

    byte   field                               written by      read by
          +---------------------------------+
       0  | kernel     address              |  run             work_off, which calls it
       8  | next       first block left     |  run, work_off   work_off, which adds one atomically
      16  | blocks     how many             |  run             work_off
      24  | itemsize   bytes of a number    |  run             vector
      32  | matrices   10 x (address, rows, |  run             matrix, vector
          |            columns)             |
     272  | integers   10                   |  run             the kernel
     352  | scalars    6                    |  run             the kernel
          +---------------------------------+

All fields before ``scalars`` are int64; a job has 376 bytes in float32 and 400 bytes in float64.

numba has no atomic operations on the CPU, cannot call an address in memory, and cannot make a
pointer from an address, so this module writes these three as LLVM instructions. numba's own threads
(``prange``) would be a second team beside torch's.
"""

import ctypes
import functools
import hashlib
import os
import struct
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import numpy as np
import torch
from llvmlite import ir
from numba import carray, extending, from_dtype, njit, types
from torch import Tensor

from hyptrans.kernels.cpu.compiled import compiled

intrinsic: Any = extending.intrinsic
"""Any, as its type in numba ignores that the compiler passes the first argument."""
_INTEGERS = types.CPointer(types.int64)

MATRICES, INTEGERS, SCALARS = 10, 10, 6
"""Most matrices, integers and scalars of a job."""

BLOCK = 256
"""Rows that one thread computes at a time and sums up together."""

NUMBERS_PER_MEMBER = 1 << 15
"""Least numbers per thread of a team, as in torch (its ``GRAIN_SIZE``)."""
NUMBERS_PER_THREAD = 1 << 18
"""Least numbers per plain thread, which has to wake up first."""

Kernel = Callable[[int, Any], None]
"""A function that computes one block of a job and leaves other blocks alone."""


def _layout(number: type[np.floating]) -> np.dtype:
    fields = [
        (f"kernel_{_sources()}", np.int64),
        ("next", np.int64),
        ("blocks", np.int64),
        ("itemsize", np.int64),
        ("matrices", np.int64, (MATRICES, 3)),  # address, rows, columns
        ("integers", np.int64, INTEGERS),
        ("scalars", number, SCALARS),
    ]
    return np.dtype(fields, align=True)


def blocks_of(x: Tensor) -> int:
    """Return the number of blocks in the rows of a tensor ``[..., d]``."""
    return -(-(x.numel() // x.size(-1)) // BLOCK)


@functools.cache
def _sources() -> str:
    """Return a digest of all source files of the kernels.

    numba's cache checks only a kernel's own file; so the digest is part of the kernels' signature.
    """
    folder = Path(__file__).parents[1]
    files = sorted(folder.rglob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


_WHOLE = f"{4 + 3 * MATRICES + INTEGERS}q{SCALARS}"
_FLOATS = {
    torch.float32: (np.float32, struct.Struct(f"{_WHOLE}f")),
    torch.float64: (np.float64, struct.Struct(f"{_WHOLE}d")),
}
"""numpy's type of the numbers, and the packer of the fields of :func:`_layout`."""


def run(
    kernel: Kernel,
    matrices: Sequence[Tensor | None],
    scalars: Sequence[float] = (),
    integers: Sequence[int] = (),
    *,
    blocks: int | None = None,
    strided: bool = False,
) -> None:
    """Let threads compute all blocks of a job; return when all are done.

    If torch uses OpenMP, its threads do the work: they are awake between torch's operators, and
    there is one team of them. Otherwise plain threads do, also after a fork, which an OpenMP team
    does not survive.

    Args:
        kernel: kernel, compiled at its first call for a dtype and kept in numba's cache.
        matrices: contiguous tensors of one dtype, each seen as rows of its last dimension; the size
            of the first decides how many threads are worthwhile.
        scalars: numbers that the kernel reads in the dtype of the matrices.
        integers: signed 64-bit integers.
        blocks: number of blocks; by default those of the rows of the first matrix.
        strided: the matrices need not be contiguous, as the kernel gets their strides.

    Raises:
        ValueError: matrices have different dtypes, are not contiguous, or are not on the CPU.
    """
    first = matrices[0]
    assert first is not None, "a job has work"
    dtype, work = first.dtype, first.numel()
    if blocks is None:
        blocks = -(-(work // first.size(-1)) // BLOCK)
    number, packer = _FLOATS[dtype]
    fields = [_compiled(kernel, number), 0, blocks, first.element_size()]
    for matrix in matrices:
        if matrix is None:
            fields += (0, 0, 0)
            continue
        if matrix.dtype is not dtype:
            raise ValueError(f"matrices of {dtype} and {matrix.dtype} in one job")
        if not matrix.is_cpu:
            raise ValueError(f"a matrix of a job is on {matrix.device}, not on the CPU")
        if not (strided or matrix.is_contiguous()):
            raise ValueError("a matrix of a job is not contiguous")
        columns = (matrix.size(-1) or 1) if matrix.dim() else 1
        fields += (matrix.data_ptr(), matrix.numel() // columns, columns)
    fields += [0] * (3 * (MATRICES - len(matrices)))
    fields += [*integers, *[0] * (INTEGERS - len(integers))]
    packed = packer.pack(*fields, *scalars, *[0] * (SCALARS - len(scalars)))
    job = _memory(packer.size).from_buffer_copy(packed)
    address, team = ctypes.addressof(job), None if _forked else _team()
    least = NUMBERS_PER_THREAD if team is None else NUMBERS_PER_MEMBER
    members = min(torch.get_num_threads(), blocks, max(1, work // least))
    if members == 1:
        _function(_driver())(address)
    elif team is not None:
        team(_driver(), address, members, 0)
    else:
        _run_in_pool(address, members)


def _run_in_pool(job: int, members: int) -> None:
    pool = _pools.get(members)
    if pool is None:
        pool = _pools.setdefault(members, ThreadPoolExecutor(members - 1, "hyptrans-kernels"))
    others = [pool.submit(_function(_driver()), job) for _ in range(members - 1)]
    try:
        _function(_driver())(job)
    finally:
        # whatever happens here, the other threads need the job's memory until they are done
        wait(others)


_forked = False
_pools: dict[int, ThreadPoolExecutor] = {}


@functools.cache
def _function(address: int) -> Callable[[int], None]:
    """Return the C function at an address; calls release Python's lock."""
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)


@functools.cache
def _team() -> Any:
    """Return OpenMP's ``GOMP_parallel(function, its argument, threads, flags)``, or None.

    It comes from the runtime that torch itself uses: another one would start its own threads.
    """
    try:
        torch_itself = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
        team = torch_itself.GOMP_parallel
    except (OSError, AttributeError):
        return None
    team.restype = None
    team.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
    return team


def _leave_team() -> None:
    global _forked
    _forked = True
    _pools.clear()


os.register_at_fork(after_in_child=_leave_team)


@functools.cache
def _memory(size: int) -> Any:
    return ctypes.c_char * size


@functools.cache
def _compiled(kernel: Kernel, number: type[np.floating]) -> int:
    # "reassoc" and the like, but not "nnan" and "ninf": a NaN must stay visible
    flags = {"reassoc", "nsz", "arcp", "contract", "afn"}
    signature = types.void(types.int64, types.CPointer(from_dtype(_layout(number))))
    # a division by zero gives infinity or NaN, as everywhere else
    made = compiled(kernel, signature, fastmath=flags, error_model="numpy")
    _kept_alive.append(made)
    return int(made.address)


@functools.cache
def _driver() -> int:
    made = compiled(work_off, types.void(_INTEGERS))
    _kept_alive.append(made)
    return int(made.address)


_kept_alive: list[Any] = []


def work_off(job: Any) -> None:
    """Compute blocks of a job, passed as a pointer to its integers, until all are claimed."""
    block = _claim(job)
    while block < job[2]:
        _compute(job, block)
        block = _claim(job)


@intrinsic
def _claim(_context: Any, job: Any) -> Any:
    """Add one to ``next`` atomically; return its previous value."""

    def generate(_: Any, builder: Any, __: Any, args: Any) -> Any:
        place = builder.gep(args[0], [ir.Constant(ir.IntType(32), 1)])
        return builder.atomic_rmw("add", place, ir.Constant(ir.IntType(64), 1), "monotonic")

    return types.int64(_INTEGERS), generate


@intrinsic
def _compute(_context: Any, job: Any, block: Any) -> Any:
    """Call the function at the address ``kernel``."""

    def generate(_: Any, builder: Any, __: Any, args: Any) -> Any:
        job, block = args
        signature = ir.FunctionType(ir.VoidType(), [ir.IntType(64), job.type])
        kernel = builder.inttoptr(builder.load(job), signature.as_pointer())
        builder.call(kernel, [block, job])

    return types.void(_INTEGERS, types.int64), generate


@njit(inline="always")
def read(pointer: Any) -> Any:
    """Return the job at an address; for kernels."""
    return carray(pointer, 1)[0]


@njit(inline="always")
def matrix(job: Any, i: int) -> Any:
    """Return a job's matrix as an array ``[rows, columns]``; for kernels."""
    address, rows, columns = _matrix(job, i)
    return carray(_pointer(address, job.scalars[0]), (rows, columns))


@njit(inline="always")
def vector(job: Any, i: int, start: int) -> Any:
    """Return as many numbers of a job's matrix as a row has, from ``start`` on; for kernels."""
    address, _, columns = _matrix(job, i)
    return carray(_pointer(address + start * job.itemsize, job.scalars[0]), (columns,))


@njit(inline="always")
def _matrix(job: Any, i: int) -> Any:
    return job.matrices[i, 0], job.matrices[i, 1], job.matrices[i, 2]


@intrinsic
def _pointer(_context: Any, address: Any, number: Any) -> Any:
    """Turn an address into a pointer to numbers of the type of ``number``."""
    pointer = types.CPointer(number)

    def generate(context: Any, builder: Any, _: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], context.get_value_type(pointer))

    return pointer(address, number), generate
