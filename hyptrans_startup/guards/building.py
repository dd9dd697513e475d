"""A model of a stored configuration is built within what its checkpoint accounts for."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
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
        self.bytes = SPARE_BYTES + TIMES_THE_FILE * size
        self.parts = SPARE_PARTS + PARTS_OF_A_TENSOR * (size // BYTES_OF_A_TENSOR)

    def take(self, part: Any) -> None:
        """Count what a module gets, or raise."""
        self.parts -= 1
        if hasattr(part, "element_size"):
            self.bytes -= part.numel() * part.element_size()
        if self.parts < 0 or self.bytes < 0:
            raise UserError(
                "its options ask for a far larger model than the parameters that it holds"
            )


@contextmanager
def within(*paths: Any) -> Iterator[None]:
    """Build what checkpoints describe; a part of one, in a file of a longer name, counts with it.

    Raises:
        UserError: the options ask for more than the files account for.
    """
    files = {
        file
        for path in map(Path, paths)
        if path.parent.is_dir()
        for file in path.parent.iterdir()
        if file.name.startswith(path.stem) and file.is_file()
    }
    with within_bytes(sum(file.stat().st_size for file in files)):
        yield


@contextmanager
def within_bytes(size: int) -> Iterator[None]:
    """Build what so many bytes of parameters describe.

    Raises:
        UserError: the options ask for more than they account for.
    """
    _install()
    _of_thread.allowances = [*_allowances(), Allowance(size)]
    try:
        yield
    finally:
        _of_thread.allowances.pop()


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
