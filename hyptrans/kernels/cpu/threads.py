"""A job shared out among the threads that torch may use.

Where torch's threads are those of OpenMP, they do the work: they are awake between torch's own
operators, and there is one team of them. Elsewhere, and after a fork, which a team of OpenMP does
not survive, plain threads do.
"""

import ctypes
import functools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import torch

NUMBERS_PER_MEMBER = 1 << 15
"""Fewer numbers are left to one thread, as by torch (its ``GRAIN_SIZE``)."""
NUMBERS_PER_THREAD = 1 << 18
"""The same for a plain thread, which must be woken up first."""

_forked = False
_pools: dict[int, ThreadPoolExecutor] = {}


def share(work_off: int, job: int, blocks: int, numbers: int) -> None:
    """Let threads work off a job together; return when it is done.

    Args:
        work_off: address of a C function of the job's address; threads may be in it at the same
            time, and one that finds nothing left to do returns.
        job: address of the job.
        blocks: the parts it can be done in, which is all that more threads than that would need.
        numbers: size of the work, which decides how many threads are worth while.
    """
    if blocks == 1:
        _function(work_off)(job)
        return
    team = None if _forked else _team()
    least = NUMBERS_PER_THREAD if team is None else NUMBERS_PER_MEMBER
    members = min(torch.get_num_threads(), blocks, max(1, numbers // least))
    if members == 1:
        _function(work_off)(job)
    elif team is not None:
        team(work_off, job, members, 0)
    else:
        pool = _pools.get(members)
        if pool is None:
            pool = _pools.setdefault(members, ThreadPoolExecutor(members - 1, "hyptrans-kernels"))
        others = [pool.submit(_function(work_off), job) for _ in range(members - 1)]
        try:
            _function(work_off)(job)
        finally:
            # whatever happens here, the job's memory is theirs until they are done
            wait(others)


@functools.cache
def _function(address: int) -> Callable[[int], None]:
    """A C function, called without Python's lock."""
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)


@functools.cache
def _team() -> Any:
    """OpenMP's ``GOMP_parallel(function, its argument, threads, flags)``, or None.

    It is that of the runtime which torch itself uses: another would bring threads of its own.
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
