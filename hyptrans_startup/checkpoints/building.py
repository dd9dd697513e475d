"""A model of a stored configuration is built within what its checkpoint accounts for."""

import math
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from hyptrans_startup.errors import UserError

TIMES_THE_FILE = 8
"""Parameters against the file: it may hold half-precision numbers, and share tables."""
SPARE_BYTES = 64 << 20
"""For what no file stores."""
BYTES_OF_A_TENSOR = 200
"""The least that a file takes for a tensor, its name and its place."""
PARTS_OF_A_TENSOR = 20
"""Modules and tensors that are made for one that is stored."""
SPARE_PARTS = 1_000
_of_thread = threading.local()
_installing = threading.Lock()
_installed: list[Any] = []


class Allowance:
    """Counts the parameters, buffers and modules of models while they are built.

    torch tells of each before it is filled, so that no memory has been used for it yet.

    Args:
        size: bytes of the parameters, or of the files that hold them.
    """

    def __init__(self, size: int) -> None:
        self.bytes, self.parts = SPARE_BYTES, SPARE_PARTS
        self.grow(size)

    def grow(self, size: int) -> None:
        """Allow what so many bytes more account for."""
        self.bytes += TIMES_THE_FILE * size
        self.parts += PARTS_OF_A_TENSOR * (size // BYTES_OF_A_TENSOR)

    def take(self, part: Any) -> None:
        """Count what a module gets, or raise."""
        self.parts -= 1
        if hasattr(part, "element_size"):
            self.bytes -= part.numel() * part.element_size()
        self.check(0)

    def check(self, size: int) -> None:
        """Raise where there is no room for so many bytes."""
        if self.parts < 0 or self.bytes < size:
            raise UserError(
                "its options ask for a far larger model than the parameters that it holds"
            )


def read_too(size: int) -> None:
    """Let what is built take so many bytes of parameters into account, which were read just now."""
    for allowance in _allowances():
        allowance.grow(size)


@contextmanager
def within_bytes(size: int) -> Iterator[None]:
    """Build what so many bytes of parameters describe, and those that are read meanwhile.

    Raises:
        UserError: the options ask for more than they account for.
    """
    _install()
    _of_thread.allowances = [*_allowances(), Allowance(size)]
    try:
        with _watching():
            yield
    finally:
        _of_thread.allowances.pop()


def stored_bytes(tensors: Iterable[Any]) -> int:
    """Bytes that tensors take, whatever their shapes say, and those of several names once."""
    storages = [tensor.untyped_storage() for tensor in tensors]
    return sum({storage.data_ptr(): storage.nbytes() for storage in storages}.values())


def check_repeated(tensors: Iterable[Any]) -> None:
    """Check that tensors, each as large as its shape says, are what their memory accounts for.

    A number may stand for many, and have many names; what takes the tensors may copy them.

    Raises:
        UserError: they are far larger.
    """
    every = list(tensors)
    said = sum(tensor.numel() * tensor.element_size() for tensor in every)
    if said > SPARE_BYTES + TIMES_THE_FILE * stored_bytes(every):
        raise UserError(f"its tensors would take {said:,} bytes, far more than it has")


def _watching() -> Any:
    """Return a context in which torch tells of each tensor before it takes memory for one.

    What is registered is counted afterwards; this is for what is filled before, or never is.
    """
    # slow to import, and of no use to commands that only name what is here
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    class Watching(TorchDispatchMode):
        """Its method comes afterwards: for one of the class itself torch imports its compiler."""

    def dispatched(_: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        options = kwargs or {}
        sizes = next((part for part in args if isinstance(part, list | tuple)), ())
        # lists that go with a tensor are other things than the size of a new one
        alone = not any(isinstance(part, torch.Tensor) for part in args)
        if alone and sizes and all(isinstance(size, int) for size in sizes):
            dtype = options.get("dtype") or torch.get_default_dtype()
            for allowance in _allowances():
                allowance.check(math.prod(sizes) * dtype.itemsize)
        return func(*args, **options)

    setattr(Watching, "__torch_dispatch__", dispatched)  # noqa: B010 - types of methods differ
    return Watching()


def _allowances() -> list[Allowance]:
    """Those that what this thread builds is counted by."""
    return getattr(_of_thread, "allowances", [])


def _take(module: Any, name: str, part: Any) -> None:
    for allowance in _allowances():
        allowance.take(part)


def _install() -> None:
    """Have torch tell of all that is built from now on.

    It goes through its hooks while other threads may be building, so none is ever taken back.
    """
    from torch.nn.modules import module

    with _installing:
        if _installed:
            return
        _installed.extend(
            [
                module.register_module_parameter_registration_hook(_take),
                module.register_module_buffer_registration_hook(_take),
                module.register_module_module_registration_hook(_take),
            ]
        )
