"""Tools for writing CPU kernels: numba, a job's memory, and functions that become vector code.

Every kernel computes one block of a job (:mod:`~hyptrans.kernels.cpu.jobs`), ``BLOCK`` rows by
default. Each block writes its sums over rows to its own row of ``partial``, so that no result
depends on the number of threads. Gradients are written by hand. Without numba, kernels are plain
functions that nobody calls.
"""

from collections.abc import Callable
from typing import Any

MISSING: ImportError | None = None
"""The reason why CPU kernels are missing, or None if they are available."""
TILE = 64
"""Rows of a block processed at a time: few enough to stay in the cache."""

try:
    from numba import njit

    inlined: Callable[[Any], Any] = njit(inline="always")
    from hyptrans.kernels.cpu.exponential import (  # noqa: F401 - for the files of operators
        exp,
        log1p,
        sinh_ratio,
        tanh_ratio,
    )
    from hyptrans.kernels.cpu.jobs import (  # noqa: F401
        BLOCK,
        blocks_of,
        matrix,
        read,
        run,
        vector,
    )
except ImportError as error:
    MISSING = error

    def inlined(function: Any) -> Any:
        """Return the function unchanged."""
        return function

    def __getattr__(name: str) -> None:
        """Return None in place of a name that needs numba."""
