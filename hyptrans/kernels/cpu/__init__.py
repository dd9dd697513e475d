"""What kernels for the CPU are written with: numba, a job's memory, and functions in vector code.

Every kernel computes one block of a job (:mod:`~hyptrans.kernels.cpu.jobs`), ``BLOCK`` rows by
default. Sums over rows go to one row of ``partial`` per block, so that no result depends on the
number of threads. Gradients are written out by hand. Where numba is not installed, kernels are
plain functions that nobody calls.
"""

from collections.abc import Callable
from typing import Any

MISSING: ImportError | None = None
"""Why there are no kernels for the CPU, if there are none."""
TILE = 64
"""Rows worked on at a time, a part of a block: few enough to stay in the cache."""

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
        """The function itself."""
        return function

    def __getattr__(name: str) -> None:
        """None stands for what needs numba."""
