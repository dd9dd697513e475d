"""Compiling a kernel, with numba's cache where there is a folder for the cache."""

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import cfunc
from numba.core.caching import FunctionCache

ANEW = "every process compiles the kernels anew, which takes seconds"


def compiled(kernel: Callable[..., Any], signature: Any, **options: Any) -> Any:
    """Compile a kernel to a C function, or take it from the cache.

    Without a folder for the cache, or where it cannot be written, a warning says so once.

    Args:
        kernel: a function in numba's Python.
        signature: types of its arguments and result, in the form of `numba.cfunc`.
        options: others of `numba.cfunc`.
    """
    if not _home_would_be_made():
        try:
            return cfunc(signature, cache=True, **options)(kernel)
        except Exception:
            # a file that is cut, a folder that cannot be written: numba stops at both
            pass
        try:
            FunctionCache(kernel).flush()
            return cfunc(signature, cache=True, **options)(kernel)
        except Exception as error:
            _warn(str(error))
    return cfunc(signature, **options)(kernel)


def _home_would_be_made() -> bool:
    """Whether numba's cache would make a home folder that is not there."""
    beside = Path(__file__).parent / "__pycache__"
    writable = beside if beside.exists() else beside.parent
    in_package = writable.is_dir() and os.access(writable, os.W_OK)
    named = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    if named or in_package:
        return False
    try:
        home = Path.home()
    except RuntimeError:
        # of a user whom the system does not know
        _warn(f"{beside} cannot be written and there is no home folder")
        return True
    if home.exists():
        return False
    _warn(f"{beside} cannot be written and the home folder {home} does not exist")
    return True


def _warn(reason: str) -> None:
    """Say once in a process why nothing is kept."""
    if not _said:
        _said.append(reason)
        warnings.warn(f"{ANEW}: {reason}; NUMBA_CACHE_DIR can name a folder", stacklevel=2)


_said: list[str] = []
