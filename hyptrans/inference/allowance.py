"""A model is built within the memory that its stored parameters account for."""

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from hyptrans.support.errors import UserError

TIMES_STORED = 16
"""Bytes of new tensors to a stored byte: half precision, shared tables and draws of a start."""
SPARE_BYTES = 64 << 20
"""For what no file stores."""
BYTES_OF_A_TENSOR = 200
"""The least that a file takes for a tensor, its name and its place."""
PARTS_OF_A_TENSOR = 20
"""New tensors to one that is stored."""
SPARE_PARTS = 1_000


def stored_bytes(tensors: Iterable[Tensor]) -> int:
    """Bytes that tensors take, whatever their shapes say, and those of several names once."""
    storages = [tensor.untyped_storage() for tensor in tensors]
    return sum({storage.data_ptr(): storage.nbytes() for storage in storages}.values())


class _Allowance(TorchDispatchMode):
    """Counts new tensors before torch takes memory for them."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.bytes = SPARE_BYTES + TIMES_STORED * size
        self.parts = SPARE_PARTS + PARTS_OF_A_TENSOR * (size // BYTES_OF_A_TENSOR)


def _count(mode: _Allowance, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    options = kwargs or {}
    sizes = next((part for part in args if isinstance(part, list | tuple)), ())
    # lists that go with a tensor are other things than the size of a new one
    alone = not any(isinstance(part, Tensor) for part in args)
    if alone and sizes and all(isinstance(size, int) for size in sizes):
        dtype = options.get("dtype") or torch.get_default_dtype()
        mode.bytes -= math.prod(sizes) * dtype.itemsize
        mode.parts -= 1
        if min(mode.bytes, mode.parts) < 0:
            raise UserError(
                "its options ask for a far larger model than the parameters that it holds"
            )
    return func(*args, **options)


# for a method in the class's own body torch would import its compiler, which takes seconds
setattr(_Allowance, "__torch_dispatch__", _count)  # noqa: B010 - types of methods differ


def within_bytes(size: int) -> _Allowance:
    """A context that builds what so many bytes of stored parameters describe.

    Raises:
        UserError: the options ask for far more than these account for.
    """
    return _Allowance(size)
