"""Rows shared out among the threads that torch may use.

The kernels release the GIL, so plain threads will do. They may be called from any thread, also at
the same time, and after a fork, which the thread pools of OpenMP do not survive.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

NUMBERS_PER_THREAD = 1 << 18
"""Fewer numbers (they take about 0.1 ms) are done before another thread has woken up, all the more
as those of torch keep their cores busy for a while after each of its own operators."""

_pools: dict[int, ThreadPoolExecutor] = {}


def share_out(kernel: Callable[..., None], blocks: int, numbers: int, *args: Any) -> None:
    """Call ``kernel(first, last, *args)`` so that the ranges cover all blocks.

    Args:
        kernel: computes blocks ``first`` to ``last - 1``; those of others are not its business, so
            the result is the same for any number of threads.
        blocks: how many there are.
        numbers: size of the work, which decides how many threads are worth waking.
        args: passed on.
    """
    threads = min(torch.get_num_threads(), blocks, max(1, numbers // NUMBERS_PER_THREAD))
    if threads == 1:
        kernel(0, blocks, *args)
        return
    pool = _pools.get(threads)
    if pool is None:
        pool = _pools.setdefault(threads, ThreadPoolExecutor(threads - 1, "hyptrans-kernels"))
    ends = [blocks * i // threads for i in range(threads + 1)]
    others = [pool.submit(kernel, ends[i], ends[i + 1], *args) for i in range(1, threads)]
    kernel(0, ends[1], *args)
    for other in others:
        other.result()


# threads do not live on in a forked process
os.register_at_fork(after_in_child=_pools.clear)
