"""A queue of requests; one thread runs requests of equal kind through the model together."""

import asyncio
from collections.abc import AsyncIterator, Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

_AT_ONCE = 200
"""Most texts of a batch, unless a single request has more; a limit shortens later ones' wait."""


class _Job(NamedTuple):
    kind: Hashable
    texts: list[str]
    answer: "asyncio.Future[list[Any]]"


class Line:
    """A queue of requests in front of one thread.

    Args:
        run: called in the thread with a kind and texts; returns an answer for each text.

    Attributes:
        unanswered: number of texts that wait or that the thread works on.
    """

    def __init__(self, run: Callable[[Any, list[str]], list[Any]]) -> None:
        self._run, self.unanswered = run, 0
        self._waiting: list[_Job] = []
        self._news = asyncio.Event()

    async def ask(self, kind: Hashable, texts: list[str]) -> list[Any]:
        """Return an answer for each text, in order; texts of equal kinds share batches."""
        job = _Job(kind, texts, asyncio.get_running_loop().create_future())
        self._waiting.append(job)
        self._news.set()
        self.unanswered += len(texts)
        try:
            return await job.answer
        finally:
            self.unanswered -= len(texts)

    @asynccontextmanager
    async def working(self, _app: object) -> AsyncIterator[None]:
        """Keep the thread working while this context is open."""
        with ThreadPoolExecutor(1) as thread:
            task = asyncio.create_task(self._work(thread))
            yield
            task.cancel()

    async def _work(self, thread: ThreadPoolExecutor) -> None:
        while await self._news.wait():
            (first, *others), rest = self._waiting, list[_Job]()
            jobs, size = [first], len(first.texts)
            for job in others:
                joins = job.kind == first.kind and size + len(job.texts) <= _AT_ONCE
                (jobs if joins else rest).append(job)
                size += joins * len(job.texts)
            self._waiting = rest
            if not rest:
                self._news.clear()
            await self._answer(jobs, thread)

    async def _answer(self, jobs: list[_Job], thread: ThreadPoolExecutor) -> None:
        texts = [text for job in jobs for text in job.texts]
        run = asyncio.get_running_loop().run_in_executor
        try:
            found = iter(await run(thread, self._run, jobs[0].kind, texts))
        except Exception as error:
            for job in jobs:
                job.answer.set_exception(error)
        else:
            for job in jobs:
                job.answer.set_result([next(found) for _ in job.texts])
