import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from hyptrans.inference.results import Hypothesis
from hyptrans.serve import line
from tests.serve.conftest import ask, running, wait_for


class Gated:
    """A model whose translation of a text is the text; it works only while its gate is open."""

    architecture, languages, max_tokens = "echo", ("en", "de"), 100

    def __init__(self):
        self.gate, self.batches, self.options = threading.Event(), [], []

    def too_long(self, texts):
        return {}

    def n_best(self, texts, **options):
        self.batches.append([*texts])
        self.options.append((options["beam"], options["length_penalty"]))
        assert self.gate.wait(60)
        if "fail" in texts:
            raise RuntimeError("as asked")
        return [[Hypothesis(text, -1.0, -2.0, ())] for text in texts]


@pytest.fixture
def gated():
    return Gated()


@pytest.fixture
def port(gated):
    with running({"echo": gated, "other": gated}) as port:
        yield port
        gated.gate.set()


@pytest.fixture
def ahead(port):
    """Ask in a thread, wait until the server counts the texts, return the future answer."""
    with ThreadPoolExecutor(16) as pool:
        counted = 0

        def asked(*texts, **fields):
            nonlocal counted
            found = pool.submit(ask, port, "/translate", {"texts": texts, **fields})
            counted += len(texts)
            wait_for(port, counted)
            return found

        yield asked


def texts_of(found):
    return [row[0]["text"] for row in found.result().content["results"]]


def test_waiting_texts_share_a_batch_and_return_to_their_senders(gated, ahead):
    first = ahead("first")
    waiting = [ahead(*(f"{i} {j}" for j in range(i))) for i in range(1, 4)]
    gated.gate.set()
    assert texts_of(first) == ["first"]
    assert [texts_of(one) for one in waiting] == [["1 0"], ["2 0", "2 1"], ["3 0", "3 1", "3 2"]]
    assert gated.batches == [["first"], ["1 0", "2 0", "2 1", "3 0", "3 1", "3 2"]]


@pytest.mark.parametrize("fields", [{"beam": 2}, {"length_penalty": 0.5}, {"model": "other"}])
def test_texts_with_different_options_or_models_are_batched_apart(gated, ahead, fields):
    found = [ahead("first"), ahead("a"), ahead("b", **fields), ahead("c"), ahead("d", beam=7)]
    gated.gate.set()
    assert [texts_of(one) for one in found] == [["first"], ["a"], ["b"], ["c"], ["d"]]
    assert gated.batches == [["first"], ["a", "c"], ["b"], ["d"]]
    own = (fields.get("beam", 5), fields.get("length_penalty", 1.0))
    assert gated.options == [(5, 1.0), (5, 1.0), own, (7, 1.0)]


@pytest.mark.parametrize(("bound", "most"), [("_HYPOTHESES", 21), ("_AT_ONCE", 4)])
def test_many_texts_go_in_several_batches_between_those_of_others(
    bound, most, gated, ahead, monkeypatch
):
    monkeypatch.setattr(line, bound, most)
    first = ahead("first")
    many, other = ahead(*"abcdef"), ahead("other", beam=7)
    gated.gate.set()
    assert [texts_of(one) for one in (first, many, other)] == [["first"], [*"abcdef"], ["other"]]
    assert gated.batches == [["first"], [*"abcd"], ["other"], [*"ef"]]


def test_a_cancelled_request_breaks_no_later_one():
    gate, kind = threading.Event(), line.Kind("/translate", "echo", 5, 1.0)

    async def asked():
        queue = line.Line(lambda _, texts: texts if gate.wait(30) else [])
        async with queue.working(None):
            first = asyncio.create_task(queue.ask(kind, ["a"]))
            while not queue.busy:
                await asyncio.sleep(0.01)
            first.cancel()
            gate.set()
            return await asyncio.wait_for(queue.ask(kind, ["b"]), 10), queue.unanswered

    assert asyncio.run(asked()) == (["b"], 0)


def test_a_full_queue_refuses_texts_until_others_are_answered(gated, port, ahead):
    found = [ahead("a"), ahead(*"b" * 18)]
    refused = ask(port, "/translate", {"texts": ["c", "d"]})
    assert refused.status == 429
    assert refused.headers["Retry-After"] == "1"
    assert refused.content == {"error": "the queue is full (20 texts): try again later"}
    found.append(ahead("c"))
    gated.gate.set()
    assert [len(texts_of(one)) for one in found] == [1, 18, 1]
    assert ask(port, "/translate", {"texts": ["c", "d"]}).status == 200
    assert ask(port, "/health").content == {"status": "ok", "unanswered": 0}


def test_a_failure_affects_only_its_batch(gated, port):
    gated.gate.set()
    failed = ask(port, "/translate", {"texts": "fail"})
    assert failed.status == 500
    assert failed.content == {"error": "the server failed, its log says why"}
    assert ask(port, "/translate", {"texts": "go on"}).status == 200
