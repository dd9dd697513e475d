"""A queue of requests; one thread runs requests of equal kind through the model together."""

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

_AT_ONCE, _HYPOTHESES = 200, 1000
"""Most texts, and most texts times beam, of a batch: they bound its memory and others' wait."""


class Kind(NamedTuple):
    """The settings that texts must share to go through a model together."""

    path: str
    model: str
    beam: int
    length_penalty: float

    @property
    def most(self) -> int:
        """Return the most texts of a batch."""
        return max(1, min(_AT_ONCE, _HYPOTHESES // self.beam))


class _Job(NamedTuple):
    kind: Kind
    texts: list[str]
    answer: "asyncio.Future[list[Any]]"


class Line:
    """A queue of requests in front of one thread.

    Args:
        run: called in the thread with a kind and texts; returns an answer for each text.

    Attributes:
        unanswered: number of texts of all requests that wait for their answer.
        busy: whether the thread works on a batch; nothing can interrupt it.
    """

    def __init__(self, run: Callable[[Kind, list[str]], list[Any]]) -> None:
        self._run, self.unanswered, self.busy = run, 0, False
        self._waiting: list[_Job] = []
        self._news = asyncio.Event()

    async def ask(self, kind: Kind, texts: list[str]) -> list[Any]:
        """Return an answer for each text, in order; texts of equal kinds share batches.

        Many texts go through the model in several batches, between those of other requests.
        """
        self.unanswered += len(texts)
        found = list[Any]()
        try:
            for start in range(0, len(texts), kind.most):
                part = texts[start : start + kind.most]
                job = _Job(kind, part, asyncio.get_running_loop().create_future())
                self._waiting.append(job)
                self._news.set()
                found += await job.answer
            return found
        finally:
            self.unanswered -= len(texts)

    @asynccontextmanager
    async def working(self, _app: object) -> AsyncIterator[None]:
        """Keep the thread working while this context is open."""
        thread = ThreadPoolExecutor(1)
        task = asyncio.create_task(self._work(thread))
        yield
        task.cancel()
        thread.shutdown(wait=False, cancel_futures=True)

    async def _work(self, thread: ThreadPoolExecutor) -> None:
        while await self._news.wait():
            (first, *others), rest = self._waiting, list[_Job]()
            jobs, size = [first], len(first.texts)
            for job in others:
                joins = job.kind == first.kind and size + len(job.texts) <= first.kind.most
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
            found = iter(await run(thread, self._batch, jobs[0].kind, texts))
        except Exception as error:
            for job in jobs:
                if not job.answer.cancelled():
                    job.answer.set_exception(error)
        else:
            for job in jobs:
                answers = [next(found) for _ in job.texts]
                if not job.answer.cancelled():
                    job.answer.set_result(answers)

    def _batch(self, kind: Kind, texts: list[str]) -> list[Any]:
        self.busy = True
        try:
            return self._run(kind, texts)
        finally:
            self.busy = False
