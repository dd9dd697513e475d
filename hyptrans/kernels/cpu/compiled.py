"""Compilation of kernels, with numba's cache if there is a folder for it."""

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import cfunc
from numba.core.caching import FunctionCache

ANEW = "every process compiles the kernels anew, which takes seconds"


def compiled(kernel: Callable[..., Any], signature: Any, **options: Any) -> Any:
    """Compile a kernel to a C function, or load it from the cache.

    Warn once if there is no folder for the cache or if it cannot be written.

    Args:
        kernel: a function in the Python that numba supports.
        signature: types of its arguments and result, as `numba.cfunc` takes them.
        options: further options of `numba.cfunc`.
    """
    if not _home_would_be_made():
        try:
            return cfunc(signature, cache=True, **options)(kernel)
        except Exception:
            # numba fails at a truncated file and at a folder that cannot be written
            pass
        try:
            FunctionCache(kernel).flush()
            return cfunc(signature, cache=True, **options)(kernel)
        except Exception as error:
            _warn(str(error))
    return cfunc(signature, **options)(kernel)


def _home_would_be_made() -> bool:
    """Return whether numba's cache would create a missing home folder."""
    beside = Path(__file__).parent / "__pycache__"
    writable = beside if beside.exists() else beside.parent
    in_package = writable.is_dir() and os.access(writable, os.W_OK)
    named = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    if named or in_package:
        return False
    try:
        home = Path.home()
    except RuntimeError:
        # the system does not know the user
        _warn(f"{beside} cannot be written and there is no home folder")
        return True
    if home.exists():
        return False
    _warn(f"{beside} cannot be written and the home folder {home} does not exist")
    return True


def _warn(reason: str) -> None:
    """Warn once per process why the cache keeps nothing."""
    if not _said:
        _said.append(reason)
        warnings.warn(f"{ANEW}: {reason}; NUMBA_CACHE_DIR can name a folder", stacklevel=2)


_said: list[str] = []
