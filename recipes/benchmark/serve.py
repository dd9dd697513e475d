"""Load ``hyptrans serve``: look for lost or mixed-up answers, measure throughput and memory.

Client threads of this process send one sentence per request, each as soon as it has its previous
answer; a translator in this process translates the same sentences for comparison. Before that, the
server gets a text of 5,000 words; at the end it gets SIGTERM while all clients send requests. CPU
time is that of the process that translates: the server or this one.

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
from hyptrans.inference.translator import Translator
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
"""Each sentence takes one of each."""
CHUNK = 100
"""Short texts per request in the test of many texts."""

Answers = list[tuple[str, str]]
"""Texts with their translations."""


def sentences(count: int) -> list[str]:
    """Return ``count`` different sentences of everyday words."""
    every = [f"{' '.join(words)}." for words in itertools.product(*map(str.split, WORDS))]
    return random.Random(1).sample(every, count)


@contextlib.contextmanager
def server() -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Run ``hyptrans serve``; yield its process and its port."""
    command = [sys.executable, "-m", "hyptrans", "serve", MODEL, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, int(process.stdout.readline().partition(":")[2].split(":")[1].split()[0])
        finally:
            process.kill()


def ask(connection: http.client.HTTPConnection, texts: Sequence[str]) -> tuple[int, list[str]]:
    """Send a request; return the status and the translations or the error message."""
    body = json.dumps({"texts": texts})
    connection.request("POST", "/translate", body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    found = json.loads(answer.read())
    if answer.status != 200:
        return answer.status, [found["error"]]
    return 200, [row[0]["text"] for row in found["results"]]


def client(port: int, chunks: Sequence[Sequence[str]]) -> Answers:
    """Send one request after another while the server lives; a truncated answer is an error."""
    connection, found = http.client.HTTPConnection("127.0.0.1", port, timeout=300), Answers()
    with contextlib.suppress(ConnectionError), contextlib.closing(connection):
        for texts in chunks:
            status, answers = ask(connection, texts)
            assert status == 200, answers
            found += zip(texts, answers, strict=True)
    return found


def together(port: int, shares: Sequence[Sequence[Sequence[str]]]) -> Answers:
    """Run a client thread per share and return the answers of all clients."""
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


def starts() -> tuple[float, float]:
    """Return the CPU seconds of one ``hyptrans translate`` and of starting the server."""
    before = os.times()
    command = [sys.executable, "-m", "hyptrans", "translate", MODEL]
    subprocess.run(command, input=b"Good night.", stdout=subprocess.DEVNULL, check=True)
    after = os.times()
    alone = sum(after[2:4]) - sum(before[2:4])
    with server() as (process, _):
        return alone, cpu_seconds(process.pid)


def direct(model: Translator, texts: Sequence[str]) -> tuple[float, float]:
    """Return CPU milliseconds per text, one text at a time and all in one call."""
    few, begun = texts[: len(texts) // 20], time.process_time()
    for text in few:
        model.translate(text)
    middle = time.process_time()
    model.translate(texts)
    end = time.process_time()
    return 1000 * (middle - begun) / len(few), 1000 * (end - middle) / len(texts)


def throughput(clients: int, requests: int, rounds: int) -> str:
    """Measure all ways in turn; return a table of medians and a report of errors."""
    texts, model = sentences(clients * requests), hyptrans.load(MODEL)
    wanted = dict(zip(texts, model.translate(texts), strict=True))
    shares = [[[text] for text in texts[i::clients]] for i in range(clients)]
    found: dict[str, list[float]] = {}
    wrong: Counter[str] = Counter()
    with server() as (process, port):
        long = ask(http.client.HTTPConnection("127.0.0.1", port), ["word " * 5000])
        for _ in range(rounds):
            seen = dict(zip(("start", "server's start"), starts(), strict=True))
            seen |= zip(("one by one", "together"), direct(model, texts), strict=True)
            for count in (1, clients):
                begun, spent = time.perf_counter(), cpu_seconds(process.pid)
                answers = together(port, shares[:count])
                seen[f"wall {count}"] = len(answers) / (time.perf_counter() - begun)
                seen[f"CPU {count}"] = 1000 * (cpu_seconds(process.pid) - spent) / len(answers)
                wrong["answers"] += len(answers)
                wrong["lost"] += count * requests - len(answers)
                other = [answer for text, answer in answers if answer != wanted[text]]
                wrong["not the translator's"] += len(other)
                wrong["another's"] += sum(answer in wanted.values() for answer in other)
            for name, value in seen.items():
                found.setdefault(name, []).append(value)
        ended = kill(process, port, shares)
    middle = {name: f"{statistics.median(values):.1f}" for name, values in found.items()}
    rows = [
        ["`hyptrans translate`, one text at a time", middle["start"], middle["one by one"], None],
        ["`hyptrans translate`, all texts", middle["start"], middle["together"], None],
    ]
    for count in (1, clients):
        own = [middle[name] for name in ("server's start", f"CPU {count}", f"wall {count}")]
        rows.append([f"`hyptrans serve`, {count} at a time", *own])
    header = ["way", "start, CPU s", "CPU ms per text", "texts per second"]
    said = ", ".join(f"{name} {count:,}" for name, count in wrong.items())
    return f"{tables.markdown(header, rows)}\n\n{said}\n5,000 words: {long}\n{ended}"


def kill(
    process: subprocess.Popen[str], port: int, shares: Sequence[Sequence[Sequence[str]]]
) -> str:
    """Send SIGTERM while all clients send requests; report their answers."""
    threading.Timer(1.0, lambda: process.send_signal(signal.SIGTERM)).start()
    return f"SIGTERM: {len(together(port, shares))} whole answers, exit status {process.wait(60)}"


def many(count: int, clients: int) -> str:
    """Send many short texts; report how the server's memory changes meanwhile."""
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
