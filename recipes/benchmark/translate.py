"""``hyptrans`` against ``fairseq-generate``: the same checkpoint, test set, beam and limit."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import hyptrans
from hyptrans.evaluation import scores
from hyptrans.support.errors import UserError

PYTHON, COMMAND = "translate", "translate, whole command"
"""From text to text in a running process, and all that a shell waits for."""
BEAM = 5
_RATE = re.compile(r"Translated .* \(([\d.]+) sentences/s")


def in_turn(checkpoint: Path, data: Path, rounds: int) -> dict[str, list[tuple[float, float]]]:
    """Seconds of ours and of fairseq's in each round, from Python and of whole commands.

    From Python, fairseq's are those that it prints, of the search alone.

    Raises:
        UserError: a command failed, or translations differ in number.
    """
    model = hyptrans.load(checkpoint, data=data)
    source = data / "raw" / f"test.{model.languages[0]}"
    sentences = scores.read_text(source)
    model.translate(sentences[:20])
    options = ["--beam", str(BEAM)]
    ours = [sys.executable, "-m", "hyptrans", "translate", str(checkpoint)]
    theirs = [str(Path(sys.executable).parent / "fairseq-generate"), str(data / "data-bin")]
    theirs += ["--user-dir", "hyptrans", "--gen-subset", "test", "--path", str(checkpoint), "--cpu"]
    theirs += ["--max-len-a", "2", "--max-len-b", "10", "--remove-bpe", "sentencepiece"]
    found: dict[str, list[tuple[float, float]]] = {PYTHON: [], COMMAND: []}
    for _ in range(rounds):
        printed, their_seconds = _run([*theirs, *options])
        rate = _RATE.search(printed)
        count = sum(line.startswith("D-") for line in printed.splitlines())
        start = time.perf_counter()
        translations = model.translate(sentences, beam=BEAM)
        seconds = time.perf_counter() - start
        if rate is None or count != len(translations):
            raise UserError(f"fairseq-generate printed {count} of {len(translations)} translations")
        found[PYTHON].append((seconds, count / float(rate[1])))
        _, our_seconds = _run([*ours, "--data", str(data), *options], source)
        found[COMMAND].append((our_seconds, their_seconds))
    return found


def _run(command: Sequence[str], source: Path | None = None) -> tuple[str, float]:
    """What a command printed, and how long it took."""
    start = time.perf_counter()
    text = source.read_bytes() if source else b""
    done = subprocess.run(command, input=text, capture_output=True, check=False)
    seconds = time.perf_counter() - start
    if done.returncode:
        last = [line for line in done.stderr.decode().splitlines() if line.strip()][-1:]
        raise UserError(f"{' '.join(command)} failed: {''.join(last)}")
    return done.stdout.decode() + done.stderr.decode(), seconds
