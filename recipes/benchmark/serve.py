"""Load on ``hyptrans serve``: answers lost or mixed up, throughput of several clients, memory.

Clients in threads of this process ask one sentence a request, each as soon as its last answer is
there. Before that, a text of 5,000 words; after it, SIGTERM while all clients ask. CPU seconds are
those of the server's process.

example: python -m recipes.benchmark.serve --clients 8 --requests 250
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import hyptrans
from hyptrans.support import tables
from hyptrans.support.errors import run_command
from hyptrans.support.provenance import versions
from recipes.benchmark.speed import processor
from recipes.common import options

MODEL = "tatoeba-en-de"
WORDS = (
    "I You Tom Mary We They",
    "like see need want buy find know love hear remember",
    "the a this that my your his her our",
    "dog cat house book car train station letter song picture river street",
    "today now here there again alone",
)
"""One of each makes a sentence."""
CHUNK = 100
"""Short texts of a request where there are many."""

Answers = list[tuple[str, str]]
"""Texts with their translations."""


def sentences(count: int) -> list[str]:
    """Return sentences that differ, of everyday words."""
    every = [f"{' '.join(words)}." for words in itertools.product(*map(str.split, WORDS))]
    return random.Random(1).sample(every, count)


@contextlib.contextmanager
def server() -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Run the command; yield its process and its port."""
    command = [sys.executable, "-m", "hyptrans", "serve", MODEL, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, int(process.stdout.readline().partition(":")[2].split(":")[1].split()[0])
        finally:
            process.kill()


def ask(connection: http.client.HTTPConnection, texts: Sequence[str]) -> tuple[int, list[str]]:
    """Return the status, and the translations or the sentence of the error."""
    body = json.dumps({"texts": texts})
    connection.request("POST", "/translate", body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    found = json.loads(answer.read())
    if answer.status != 200:
        return answer.status, [found["error"]]
    return 200, [row[0]["text"] for row in found["results"]]


def client(port: int, chunks: Sequence[Sequence[str]]) -> Answers:
    """Ask one request after the other while the server lives; an answer that is cut is an error."""
    connection, found = http.client.HTTPConnection("127.0.0.1", port, timeout=300), Answers()
    with contextlib.suppress(ConnectionError), contextlib.closing(connection):
        for texts in chunks:
            status, answers = ask(connection, texts)
            assert status == 200, answers
            found += zip(texts, answers, strict=True)
    return found


def together(port: int, shares: Sequence[Sequence[Sequence[str]]]) -> Answers:
    """Return what all clients got, one thread a share."""
    with ThreadPoolExecutor(len(shares)) as pool:
        return [
            one for found in pool.map(lambda share: client(port, share), shares) for one in found
        ]


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(pid: int) -> float:
    """Return the resident memory of a process in MiB."""
    return (
        int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    )


def throughput(clients: int, requests: int, rounds: int) -> str:
    """Measure one client and several in turn; return a table and what went wrong."""
    texts = sentences(clients * requests)
    wanted = dict(zip(texts, hyptrans.load(MODEL).translate(texts), strict=True))
    shares = [[[text] for text in texts[i::clients]] for i in range(clients)]
    taken: dict[int, list[tuple[float, float]]] = {1: [], clients: []}
    wrong: Counter[str] = Counter()
    with server() as (process, port):
        long = ask(http.client.HTTPConnection("127.0.0.1", port), ["word " * 5000])
        for _ in range(rounds):
            for count, times in taken.items():
                start, spent = time.perf_counter(), cpu_seconds(process.pid)
                found = together(port, shares[:count])
                wall, spent = time.perf_counter() - start, cpu_seconds(process.pid) - spent
                times.append((len(found) / wall, 1000 * spent / len(found)))
                wrong["answers"] += len(found)
                wrong["lost"] += count * requests - len(found)
                other = [answer for text, answer in found if answer != wanted[text]]
                wrong["not the translator's"] += len(other)
                wrong["another's"] += sum(answer in wanted.values() for answer in other)
        ended = kill(process, port, shares)
    rows = [[count, *(f"{statistics.median(column):.1f}" for column in zip(*times, strict=True))]
            for count, times in taken.items()]  # fmt: skip
    said = [f"{name} {count:,}" for name, count in wrong.items()]
    header = ["clients", "answers a second", "CPU ms an answer"]
    return f"{tables.markdown(header, rows)}\n\n{', '.join(said)}\n5,000 words: {long}\n{ended}"


def kill(
    process: subprocess.Popen[str], port: int, shares: Sequence[Sequence[Sequence[str]]]
) -> str:
    """Send SIGTERM while all clients ask; say what they got."""
    threading.Timer(1.0, lambda: process.send_signal(signal.SIGTERM)).start()
    return f"SIGTERM: {len(together(port, shares))} whole answers, exit status {process.wait(60)}"


def many(count: int, clients: int) -> str:
    """Send many short texts; return the memory of the server over them."""
    texts = list(itertools.islice(itertools.cycle(sentences(CHUNK * clients)), count))
    chunks = [texts[i : i + CHUNK] for i in range(0, count, CHUNK)]
    levels = []
    with server() as (process, port):
        for part in range(10):
            own = chunks[part::10]
            found = together(port, [own[i::clients] for i in range(clients)])
            assert len(found) == sum(map(len, own))
            levels.append(f"{memory(process.pid):.0f}")
    return f"MiB of the server after each tenth of {count:,} texts: {', '.join(levels)}"


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = options.script_parser(__doc__, Path(__file__))
    options.add_number(parser, "--clients", 8, "clients at a time")
    options.add_number(parser, "--requests", 250, "requests of each")
    options.add_number(parser, "--rounds", 3, "turns of one client and of all")
    options.add_number(parser, "--texts", None, f"instead, texts to send, {CHUNK} a request")
    args = parser.parse_args(argv)
    if args.texts:
        print(many(args.texts, args.clients))
    else:
        print(throughput(args.clients, args.requests, args.rounds))
    about = versions("torch", "starlette", "uvicorn").items()
    print(f"\n{processor()}, OMP_NUM_THREADS={os.environ.get('OMP_NUM_THREADS')}; "
          f"{', '.join(map(' '.join, about))}")  # fmt: skip


if __name__ == "__main__":
    sys.exit(run_command(main, stopped=""))
