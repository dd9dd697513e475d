"""Which backend computes an operator, and how the CPU's kernels run.

The environment variable ``HYPTRANS_KERNELS`` chooses between ``auto`` (the default, also for an
empty value), ``eager`` (the formulas in plain torch), ``numba`` (the CPU) and ``triton`` (CUDA);
this module reads it on import.

A call of a CPU kernel is a job: one piece of memory that names the kernel, its matrices and its
scalars. A kernel computes one block of a job, ``BLOCK`` rows by default. It writes the block's sums
over rows to a row of ``partial`` of their own, so that no result depends on the number of threads.
Threads claim blocks one by one until none is left (:func:`work_off`). :func:`run` writes a job, and
compiled code reads it in place:

    byte   field                               written by      read by
          +---------------------------------+
       0  | kernel     address              |  run             work_off, which calls it
       8  | next       first block left     |  run, work_off   work_off, which adds one atomically
      16  | blocks     how many             |  run             work_off
      24  | matrices   10 x (address, rows, |  run             matrix
          |            columns)             |
     264  | integers   3                    |  run             the kernel
     288  | scalars    6                    |  run             the kernel
          +---------------------------------+

All fields before ``scalars`` are int64; a job has 312 bytes in float32 and 336 bytes in float64.

numba has no atomic operations on the CPU and cannot call an address in memory, so this module
writes these two as LLVM instructions. numba's own threads (``prange``) would be a second team
beside torch's.
"""

import ctypes
import functools
import hashlib
import importlib.util
import os
import struct
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from llvmlite import ir
from numba import cfunc, from_dtype, types
from torch import Tensor

from hyptrans.kernels.cpu import intrinsic
from hyptrans.support.errors import UserError

VARIABLE = "HYPTRANS_KERNELS"
CHOICES = ("auto", "eager", "numba", "triton")
CHOSEN = os.environ.get(VARIABLE) or "auto"
"""One of ``CHOICES``; any other value raises an error at the first operator."""
FULL = (torch.float32, torch.float64)

MATRICES, INTEGERS, SCALARS = 10, 3, 6
"""Most matrices, integers and scalars of a job."""
BLOCK = 256
"""Rows that one thread computes at a time and sums up together."""
TILE = 64
"""Rows of a block processed at a time: few enough to stay in the cache."""
NUMBERS_PER_MEMBER = 1 << 15
"""Least numbers per thread, as in torch (its ``GRAIN_SIZE``)."""

Kernel = Callable[[int, Any], None]
"""A function that computes one block of a job and leaves other blocks alone."""


def backend(x: Tensor, *, triton: bool = False) -> Literal["eager", "numba", "triton"]:
    """Return the backend that computes an operator of ``x``.

    It is ``eager``, the formula, for empty or 0-dimensional tensors, for dtypes or devices without
    a kernel, and while torch compiles or exports a graph, which cannot contain kernels.

    Args:
        x: the operator's first operand.
        triton: the operator has Triton kernels.

    Raises:
        UserError: ``HYPTRANS_KERNELS`` is none of ``CHOICES``.
    """
    if torch.compiler.is_compiling():
        return "eager"
    if CHOSEN not in CHOICES:
        raise UserError(f"{VARIABLE} must be one of {', '.join(CHOICES)}, got {CHOSEN!r}")
    if CHOSEN == "eager" or x.dtype not in FULL or not x.numel() or not x.dim():
        return "eager"
    if x.is_cpu and CHOSEN != "triton":
        return "numba"
    on_device = x.is_cuda or (x.is_cpu and os.environ.get("TRITON_INTERPRET") == "1")
    known = triton and on_device and CHOSEN != "numba"
    return "triton" if known and _has_triton() else "eager"


@functools.cache
def _has_triton() -> bool:
    """Return whether Triton is installed; if not, warn once."""
    found = importlib.util.find_spec("triton") is not None
    if not found:
        warnings.warn("layers run slower on GPUs without triton: pip install triton", stacklevel=2)
    return found


def applied(function: type[torch.autograd.Function], *operands: Any) -> Any:
    """Return the result of an operator's autograd function.

    Without gradients this calls the function's ``forward`` directly: torch's own ``apply`` takes
    as long as a kernel does for the few rows of a decoding step.
    """
    if torch.is_grad_enabled():
        return function.apply(*operands)
    return function.forward(_Unrecorded(), *operands)


class _Unrecorded:
    """Stand-in for the context of an autograd function that needs no gradient."""

    def save_for_backward(self, *_: Any) -> None:
        """Save nothing."""


def no_second_derivative() -> RuntimeError:
    """Return the error to raise where a kernel would run while torch records gradients.

    torch does not record in an autograd function, except in a backward pass with
    ``create_graph=True``. Kernels are not torch operators: with ``once_differentiable``,
    :func:`torch.autograd.grad` would leave them out of a second derivative without an error.
    """
    return RuntimeError(
        "create_graph=True asks for a second derivative, which kernels do not have: "
        f"set {VARIABLE}=eager, which computes formulas in plain torch"
    )


def blocks_of(x: Tensor) -> int:
    """Return the number of blocks in the rows of a tensor ``[..., d]``."""
    return -(-(x.numel() // x.size(-1)) // BLOCK)


def run(
    kernel: Kernel,
    matrices: Sequence[Tensor | None],
    scalars: Sequence[float] = (),
    integers: Sequence[int] = (),
    *,
    blocks: int | None = None,
) -> None:
    """Let threads compute all blocks of a job; return when all are done.

    The threads are those of torch's OpenMP team: they are awake between torch's operators. Without
    such a team, as on macOS or after a fork, which it does not survive, the caller's own thread
    computes alone.

    Args:
        kernel: kernel, compiled at its first call for a dtype and kept in numba's cache.
        matrices: contiguous tensors of one dtype, each seen as rows of its last dimension; the size
            of the first decides how many threads are worthwhile.
        scalars: numbers that the kernel reads in the dtype of the matrices.
        integers: signed 64-bit integers.
        blocks: number of blocks; by default those of the rows of the first matrix.

    Raises:
        RuntimeError: a second derivative is wanted.
        ValueError: matrices have different dtypes, are not contiguous, or are not on the CPU.
    """
    if torch.is_grad_enabled():
        raise no_second_derivative()
    first = matrices[0]
    assert first is not None, "a job has work"
    dtype, work = first.dtype, first.numel()
    blocks = blocks_of(first) if blocks is None else blocks
    number, packer, memory = _FLOATS[dtype]
    fields = [_compiled(kernel, number), 0, blocks]
    for matrix in matrices:
        if matrix is None:
            fields += (0, 0, 0)
            continue
        if matrix.dtype is not dtype:
            raise ValueError(f"matrices of {dtype} and {matrix.dtype} in one job")
        if not matrix.is_cpu:
            raise ValueError(f"a matrix of a job is on {matrix.device}, not on the CPU")
        if not matrix.is_contiguous():
            raise ValueError("a matrix of a job is not contiguous")
        columns = (matrix.size(-1) or 1) if matrix.dim() else 1
        fields += (matrix.data_ptr(), matrix.numel() // columns, columns)
    fields += [0] * (3 * (MATRICES - len(matrices)))
    fields += [*integers, *[0] * (INTEGERS - len(integers))]
    job = memory.from_buffer_copy(packer.pack(*fields, *scalars, *[0] * (SCALARS - len(scalars))))
    members = min(torch.get_num_threads(), blocks, max(1, work // NUMBERS_PER_MEMBER))
    team = _team() if members > 1 and not _forked else None
    if team is None:
        _driver()(ctypes.addressof(job))
    else:
        team(_driver(), ctypes.addressof(job), members, 0)


def _packed(number: Any, letter: str) -> tuple[Any, struct.Struct, Any]:
    packer = struct.Struct(f"{3 + 3 * MATRICES + INTEGERS}q{SCALARS}{letter}")
    return number, packer, ctypes.c_char * packer.size


_FLOATS = {torch.float32: _packed(np.float32, "f"), torch.float64: _packed(np.float64, "d")}
"""numpy's type of the numbers, the packer of the fields of :func:`_layout`, and a job's memory."""


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
    team.argtypes = [_Driver, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
    return team


_forked = False


def _leave_team() -> None:
    global _forked
    _forked = True


os.register_at_fork(after_in_child=_leave_team)


@functools.cache
def _layout(number: Any) -> np.dtype:
    # numba's cache checks only a kernel's own file; so a digest of all is part of the signature
    files = sorted(Path(__file__).parent.glob("*.py"))
    sources = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]
    fields = [
        (f"kernel_{sources}", np.int64),
        ("next", np.int64),
        ("blocks", np.int64),
        ("matrices", np.int64, (MATRICES, 3)),  # address, rows, columns
        ("integers", np.int64, INTEGERS),
        ("scalars", number, SCALARS),
    ]
    return np.dtype(fields, align=True)


@functools.cache
def _compiled(kernel: Kernel, number: Any) -> int:
    # "reassoc" and the like, but not "nnan" and "ninf": a NaN must stay visible
    flags = {"reassoc", "nsz", "arcp", "contract", "afn"}
    signature = types.void(types.int64, types.CPointer(from_dtype(_layout(number))))
    # a division by zero gives infinity or NaN, as everywhere else
    made = _c_function(kernel, signature, fastmath=flags, error_model="numpy")
    return int(made.address)


_Driver = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_INTEGERS = types.CPointer(types.int64)


@functools.cache
def _driver() -> Callable[[int], None]:
    """Return :func:`work_off` as a C function, which releases Python's lock while it runs."""
    return _Driver(_c_function(work_off, types.void(_INTEGERS)).address)


def _c_function(function: Any, signature: Any, **options: Any) -> Any:
    """Compile a function to C, or load it from numba's cache; warn once if that keeps nothing."""
    try:
        made = cfunc(signature, cache=True, **options)(function)
    except Exception as error:  # no folder can be written, or a file of the cache is damaged
        if not _uncached:
            warnings.warn(
                f"every process compiles the kernels anew, which takes seconds: {error}; "
                "delete a damaged file, or let NUMBA_CACHE_DIR name another folder",
                stacklevel=2,
            )
            _uncached.append(function)
        made = cfunc(signature, **options)(function)
    _kept_alive.append(made)
    return made


_kept_alive: list[Any] = []
_uncached: list[Any] = []


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
