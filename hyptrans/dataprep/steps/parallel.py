"""One function over many lines on all cores, in order, with a bounded number in flight."""

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
# below this many chunks, starting processes costs more than it saves
_WORTH_PROCESSES = 4
_function: LineFunction


def map_lines(
    build: Callable[[], LineFunction], lines: Iterable[str], *, workers: int
) -> Iterator[str]:
    """Yield ``build()(line)`` for every line, in order, whatever the number of workers.

    Args:
        build: loads models and tables inside each process, so that it must be small when pickled.
        lines: of text.
        workers: processes.

    Raises:
        UserError: a worker process died (most likely for lack of memory).
    """
    stream = iter(lines)
    head = list(islice(stream, _CHUNK * _WORTH_PROCESSES if workers > 1 else 0))
    if workers == 1 or len(head) < _CHUNK * _WORTH_PROCESSES:
        yield from map(build(), chain(head, stream))
        return
    # spawn: a forked copy of a process with threads may hang, and carries the parent's memory
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, _start_worker, (build,)) as pool:
        try:
            yield from _in_order(pool, chain(head, stream), limit=3 * workers)
        except BrokenProcessPool as error:
            raise UserError(
                "a worker process was killed, probably for lack of memory; "
                "run the command again with fewer --workers, it continues where it stopped"
            ) from error


def run_apart(function: Callable[..., T], *arguments: Any) -> T:
    """Call a function in a process of its own, so that the memory it took is given back.

    Raises:
        UserError: the process died (most likely for lack of memory).
    """
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context, _start_watch) as pool:
        try:
            return pool.submit(function, *arguments).result()
        except BrokenProcessPool as error:
            raise UserError(
                "a process was killed, probably for lack of memory; close other programs and run "
                "the command again, it continues where it stopped"
            ) from error


def _in_order(pool: ProcessPoolExecutor, lines: Iterator[str], limit: int) -> Iterator[str]:
    waiting: deque[Future[list[str]]] = deque()
    while True:
        # Executor.map would read the whole input ahead
        while len(waiting) < limit and (chunk := list(islice(lines, _CHUNK))):
            waiting.append(pool.submit(_apply, chunk))
        if not waiting:
            return
        yield from waiting.popleft().result()


def _start_worker(build: Callable[[], LineFunction]) -> None:
    global _function
    _start_watch()
    _function = build()


def _start_watch() -> None:
    # Ctrl-C reaches every process of a terminal: the parent tells of it, and ends these
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    # a parent ended by kill -9 cannot tell its workers
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _apply(lines: list[str]) -> list[str]:
    return [_function(line) for line in lines]
