"""Load ``hyptrans serve``: look for lost or mixed-up answers, and measure throughput.

Client threads of this process send one sentence per request, each as soon as it has its previous
answer; a translator in this process translates the same sentences for comparison. At the end the
server gets SIGTERM while all clients send requests. CPU time is that of the process that
translates: the server or this one.

example: python -m recipes.benchmark.serve --clients 8 --requests 250
"""

import contextlib
import http.client
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd

import hyptrans
from hyptrans.support.errors import run_command
from hyptrans.support.provenance import versions
from recipes.benchmark.timing import processor
from recipes.common import options
from recipes.common.results import markdown

MODEL = "tatoeba-en-de"
WORDS = (
    "I You Tom Mary We They",
    "like see need want buy find know love hear remember",
    "the a this that my your his her our",
    "dog cat house book car train station letter song picture river street",
    "today now here there again alone",
)
"""Each sentence takes one of each."""


def sentences(count: int) -> list[str]:
    """Return ``count`` different sentences of everyday words."""
    every = [f"{' '.join(words)}." for words in itertools.product(*map(str.split, WORDS))]
    return random.Random(1).sample(every, count)


def client(port: int, texts: Sequence[str]) -> list[tuple[str, str]]:
    """Send one text after another while the server lives; return texts and translations."""
    connection, found = http.client.HTTPConnection("127.0.0.1", port, timeout=300), []
    with contextlib.suppress(ConnectionError), contextlib.closing(connection):
        for text in texts:
            kind = {"Content-Type": "application/json"}
            connection.request("POST", "/translate", json.dumps({"texts": [text]}), kind)
            # raises an error if the answer is cut
            answer = json.loads(connection.getresponse().read())
            found.append((text, answer["results"][0][0]["text"]))
    return found


def together(port: int, shares: Sequence[Sequence[str]]) -> list[tuple[str, str]]:
    """Run a client thread per share and return the answers of all clients."""
    with ThreadPoolExecutor(len(shares)) as pool:
        answers = pool.map(lambda share: client(port, share), shares)
        return [*itertools.chain.from_iterable(answers)]


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def load(clients: int, requests: int, rounds: int) -> str:
    """Measure all ways in turn; return a table of medians and a report of errors."""
    texts, model = sentences(clients * requests), hyptrans.load(MODEL)
    wanted = dict(zip(texts, model.translate(texts), strict=True))
    shares = [texts[i::clients] for i in range(clients)]
    rows: list[tuple[str, float, float | None]] = []
    found: list[tuple[str, str]] = []
    command = [sys.executable, "-m", "hyptrans", "serve", MODEL, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            port = int(process.stdout.readline().partition(":")[2].split(":")[1].split()[0])
            for _ in range(rounds):
                spent = time.process_time()
                model.translate(texts)
                spent = time.process_time() - spent
                rows.append(("`hyptrans translate`, all texts", 1000 * spent / len(texts), None))
                for count in (1, clients):
                    begun, spent = time.perf_counter(), cpu_seconds(process.pid)
                    answers = together(port, shares[:count])
                    rate = len(answers) / (time.perf_counter() - begun)
                    each = 1000 * (cpu_seconds(process.pid) - spent) / len(answers)
                    rows.append((f"`hyptrans serve`, {count} at a time", each, rate))
                    found += answers
            threading.Timer(1.0, process.terminate).start()
            last = len(together(port, shares))
            status = process.wait(60)
        finally:
            process.kill()
    lost = rounds * (1 + clients) * requests - len(found)
    wrong = sum(answer != wanted[text] for text, answer in found)
    frame = pd.DataFrame(rows, columns=["way", "CPU ms per text", "texts per second"])
    frame = frame.groupby("way", sort=False).median().reset_index()
    return (
        f"{markdown(frame, dict.fromkeys(frame, '.1f'))}\n\n"
        f"answers {len(found):,}, lost {lost:,}, wrong {wrong:,}\n"
        f"{signal.SIGTERM.name}: {last} whole answers, exit status {status}"
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = options.script_parser(__doc__, Path(__file__))
    options.add_number(parser, "--clients", 8, "clients at a time")
    options.add_number(parser, "--requests", 250, "requests of each")
    options.add_number(parser, "--rounds", 3, "turns of one client and of all")
    args = parser.parse_args(argv)
    print(load(args.clients, args.requests, args.rounds))
    about = ", ".join(map(" ".join, versions("torch", "starlette", "uvicorn").items()))
    print(f"\n{processor()}, OMP_NUM_THREADS={os.environ.get('OMP_NUM_THREADS')}; {about}")


if __name__ == "__main__":
    sys.exit(run_command(main, stopped=""))
