"""Map one function over many lines on all cores, in order, with few lines in flight."""

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, islice
from multiprocessing.connection import wait
from typing import Any, TypeVar

from hyptrans.support.errors import UserError

T = TypeVar("T")
LineFunction = Callable[[str], str]
_CHUNK = 1000
_WORTH_PROCESSES = 4000
"""With fewer lines, starting processes costs more than it saves."""
_function: Callable[[str], Any]


def map_lines(
    build: Callable[[], Callable[[str], T]], lines: Iterable[str], *, workers: int
) -> Iterator[T]:
    """Yield ``build()(line)`` for every line, in order, whatever the number of worker processes.

    Each process calls ``build``, which loads models and tables; pickled, it must be small.

    Raises:
        UserError: a worker process died (most likely from lack of memory).
    """
    stream = iter(lines)
    head = list(islice(stream, _WORTH_PROCESSES))
    stream = chain(head, stream)
    if workers == 1 or len(head) < _WORTH_PROCESSES:
        yield from map(build(), stream)
        return
    # spawn: a fork of a process with threads may hang, and carries the parent's memory
    context = multiprocessing.get_context("spawn")
    waiting: deque[Future[list[T]]] = deque()
    with ProcessPoolExecutor(workers, context, _start_worker, (build,)) as pool:
        try:
            # Executor.map would first read the whole input
            while chunk := list(islice(stream, _CHUNK)):
                waiting.append(pool.submit(_apply, chunk))
                if len(waiting) == 3 * workers:
                    yield from waiting.popleft().result()
            for future in waiting:
                yield from future.result()
        except BrokenProcessPool as error:
            raise UserError(
                "a worker process was killed, probably for lack of memory; "
                "run the command again with fewer --workers, it continues where it stopped"
            ) from error


def _start_worker(build: Callable[[], Callable[[str], Any]]) -> None:
    global _function
    # Ctrl-C reaches every process of a terminal: the parent reports it and ends its workers
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _function = build()


def _end_with_parent() -> None:
    # a parent ended by kill -9 cannot end its workers
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _apply(lines: list[str]) -> list[Any]:
    return [_function(line) for line in lines]
