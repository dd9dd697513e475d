"""Sentences a second: ``hyptrans`` against ``fairseq-generate``, in turn, with one checkpoint.

Both translate the test set with the same beam and length limit. fairseq counts the search alone, so
from Python everything from text to text stands against that; from the shell whole commands against
each other. Both in CPU seconds too, which a busy machine does not change.
"""

from __future__ import annotations

import argparse
import re
import resource
import shlex
import statistics
import subprocess
import sys
import time
from pathlib import Path

import hyptrans
from hyptrans.evaluation import scores
from hyptrans.support import tables
from hyptrans.support.errors import UserError, run_command
from recipes.common import options

_RATE = re.compile(r"Translated .* \(([\d.]+) sentences/s")
_BY_CPU = [
    sys.executable,
    "-c",
    "import time; time.perf_counter = time.process_time; "
    "from fairseq_cli.generate import cli_main; cli_main()",
]
"""fairseq-generate whose clock is the processor's time."""


def main() -> None:
    """Time and print.

    Raises:
        UserError: a command failed, or translations differ in number.
    """
    parser = options.script_parser(__doc__)
    parser.epilog = "example: python -m recipes.benchmark.translate checkpoint_last.pt --data data"
    add = parser.add_argument
    add("checkpoint", type=Path, help="file that fairseq-train wrote")
    add("--data", type=Path, required=True, help="folder that data-prep/ wrote, with a test set")
    add("--beam", type=int, default=5, help="hypotheses of a sentence (default: %(default)s)")
    add("--rounds", type=int, default=3, help="turns of each (default: %(default)s)")
    args = parser.parse_args()
    options.check_positive(args, "beam", "rounds")
    model = hyptrans.load(args.checkpoint, data=args.data)
    source = args.data / "raw" / f"test.{model.languages[0]}"
    sentences = scores.read_text(source)
    model.translate(sentences[:20])
    rows: dict[str, list[float]] = {}
    same = 0
    for _ in range(args.rounds):
        theirs = _fairseq(args, rows)
        start, used = time.perf_counter(), time.process_time()
        ours = model.translate(sentences, beam=args.beam)
        seconds, used = time.perf_counter() - start, time.process_time() - used
        rows.setdefault("model.translate", []).append(len(sentences) / seconds)
        rows.setdefault("model.translate, CPU", []).append(len(sentences) / used)
        rows.setdefault("search, CPU", []).append(_rate("".join(_run(_search(args, _BY_CPU)))))
        _shell(args, source, rows)
        if len(ours) != len(theirs):
            raise UserError(f"{len(ours)} translations stand against fairseq's {len(theirs)}")
        same = sum(one == other for one, other in zip(ours, theirs, strict=True))
    median = {name: statistics.median(values) for name, values in rows.items()}
    pairs = {
        "sentences a second, search and text, from Python": ("model.translate", "search"),
        "sentences a CPU second, search and text, from Python": (
            "model.translate, CPU",
            "search, CPU",
        ),
        "sentences a second, whole commands": ("hyptrans translate", "fairseq-generate"),
        "sentences a CPU second, whole commands": ("hyptrans, CPU", "fairseq, CPU"),
    }
    table = [
        [what, f"{median[own]:.1f}", f"{median[other]:.1f}", f"{median[own] / median[other]:.2f}"]
        for what, (own, other) in pairs.items()
    ]
    print(tables.markdown(["", "hyptrans", "fairseq-generate", "ratio"], table))
    print(f"\n{same} of {len(sentences)} translations are the same; {args.rounds} rounds, medians")


def _fairseq(args: argparse.Namespace, rows: dict[str, list[float]]) -> list[str]:
    script = str(Path(sys.executable).parent / "fairseq-generate")
    output = _timed(_search(args, [script]), None, "fairseq", rows)
    rows.setdefault("search", []).append(_rate(output))
    lines = (line[2:].split("\t") for line in output.splitlines() if line.startswith("D-"))
    by_number = {int(number): text for number, _, text in lines}
    return [by_number[number] for number in sorted(by_number)]


def _shell(args: argparse.Namespace, source: Path, rows: dict[str, list[float]]) -> None:
    command = [sys.executable, "-m", "hyptrans", "translate", str(args.checkpoint)]
    command += ["--data", str(args.data), "--beam", str(args.beam)]
    _timed(command, source, "hyptrans", rows)


def _search(args: argparse.Namespace, program: list[str]) -> list[str]:
    command = [*program, str(args.data / "data-bin"), "--user-dir", "hyptrans"]
    command += ["--gen-subset", "test", "--path", str(args.checkpoint), "--cpu"]
    command += ["--beam", str(args.beam), "--max-len-a", "2", "--max-len-b", "10"]
    return [*command, "--remove-bpe", "sentencepiece"]


def _rate(output: str) -> float:
    """Sentences a second of the search, as fairseq prints them."""
    found = _RATE.search(output)
    if found is None:
        raise UserError("fairseq-generate printed no rate")
    return float(found[1])


def _run(command: list[str], text: bytes = b"") -> tuple[str, str]:
    done = subprocess.run(command, input=text, capture_output=True, check=False)
    printed, logged = done.stdout.decode(), done.stderr.decode()
    if done.returncode:
        last = [line for line in logged.splitlines() if line.strip()][-1:]
        raise UserError(f"{shlex.join(command)} failed: {''.join(last)}")
    return printed, logged


def _timed(command: list[str], source: Path | None, name: str, rows: dict[str, list[float]]) -> str:
    """Run a command that translates all; note how fast, and what of the processor it took."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    printed, logged = _run(command, source.read_bytes() if source else b"")
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    count = sum(1 for line in printed.split("\n")[:-1] if source or line.startswith("D-"))
    whole = {"fairseq": "fairseq-generate", "hyptrans": "hyptrans translate"}[name]
    rows.setdefault(whole, []).append(count / seconds)
    rows.setdefault(f"{name}, CPU", []).append(count / used)
    return printed + logged


if __name__ == "__main__":
    sys.exit(run_command(main, stopped=""))
