"""What only a CUDA device can tell beside the tests and the speed, several processes at a time.

Loss curves in float32, bfloat16 and float16; whether two runs of one seed are equal; launches and
busy time of a step; formulas through torch.compile against plain ones; kernels under
compute-sanitizer where that is installed. Layers and formulas that the speed is measured with are
compiled too, into torch's cache.

example: python -m recipes.benchmark.gpu --json gpu.json
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile
from tqdm import tqdm

from hyptrans.kernels import check
from hyptrans.support.errors import UserError, run_command
from hyptrans.support.files import write_json
from recipes.benchmark import contenders, curves, speed, timing
from recipes.common import options, results

ARCHS = ("hvt", "hypformer", "han", "hybonet_plus", "hybonet", contenders.TWIN)
COMPILED = [
    f"{arch}{way}" for way in (contenders.INDUCTOR, contenders.COMPILED) for arch in speed.WAYS[way]
]
SANITIZED = "--sanitized"
SECONDS = 100
"""That compute-sanitizer has."""


def curves_of(arch: str) -> dict[str, list[float]]:
    """Losses over 300 updates, by precision."""
    precisions = speed.PRECISIONS.items()
    return {name: curves.curve(arch, "cuda", dtype, updates=300) for name, dtype in precisions}


def seeds_of(arch: str) -> dict[str, bool | str]:
    """Whether two trainings of one seed have equal losses, as torch is and when told to be so."""
    found: dict[str, bool | str] = {}
    for name in ("by default", "deterministic"):
        torch.use_deterministic_algorithms(name == "deterministic")
        try:
            one, two = (curves.curve(arch, "cuda", dropout=0.1) for _ in range(2))
            found[name] = one == two
        except RuntimeError as error:
            found[name] = str(error).splitlines()[0]
        finally:
            torch.use_deterministic_algorithms(False)
    return found


def formulas_of(family: str) -> str | None:
    """What a family's formulas through torch.compile do wrong in float32; None: nothing."""
    check.families()  # imports them
    return check.failure("inductor", torch.device("cuda"), torch.float32, family)


def busy(arch: str) -> dict[str, tuple[int, float]]:
    """Launches of a training step in bfloat16, and the milliseconds that the GPU works on them."""
    found = {}
    for size in (speed.SHORT, speed.WIDE):
        step = contenders.training_step(arch, size, "cuda", torch.bfloat16)
        for _ in range(3):
            step()
        torch.cuda.synchronize()
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
            step()
            torch.cuda.synchronize()
        # the optimizer's span is no launch
        launched = [
            event
            for event in seen.key_averages()
            if event.device_type.name == "CUDA" and not event.key.startswith("Optimizer")
        ]
        time = sum(event.self_device_time_total for event in launched) / 1000
        found[f"d={size.dim}"] = sum(event.count for event in launched), round(time, 1)
    return found


def compiled(name: str) -> dict[str, float]:
    """Put what the comparisons of speed compile into torch's cache: seconds of first steps.

    Args:
        name: of a contender.
    """
    took = {}
    for size in (speed.SHORT, speed.WIDE):
        for precision in ("float32", "bfloat16"):
            step = contenders.training_step(name, size, "cuda", speed.PRECISIONS[precision])
            took[f"d={size.dim} {precision}"] = round(timing.seconds_of(step, "cuda"), 1)
    return took


def sanitized(_: str) -> str:
    """The last line of compute-sanitizer on every kernel's check."""
    tool = shutil.which("compute-sanitizer")
    if tool is None:
        return "compute-sanitizer is not installed"
    # stopped by a program that stops its children, too
    command = ["timeout", str(SECONDS), tool, sys.executable, "-m", "recipes.benchmark.gpu"]
    done = subprocess.run([*command, SANITIZED], capture_output=True, text=True)
    if done.returncode:
        return f"failed ({done.returncode}): {' '.join(done.stderr.split()[-40:])}"
    return (done.stdout.strip().splitlines() or ["said nothing"])[-1]


def answered(function: Callable[[str], Any], name: str) -> Any:
    """What a part finds, or its error in words: some errors cannot be sent to another process."""
    try:
        return function(name)
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:2000]}"


def check_kernels() -> None:
    """Check every kernel of Triton in float32.

    Raises:
        UserError: one is wrong.
    """
    for family in check.families():
        reason = check.failure("triton", torch.device("cuda"), torch.float32, family)
        if reason:
            raise UserError(f"{family}: {reason}")
        print(family, "passes")


def main() -> None:
    """Run the parts asked for and write what they found after each."""
    parser = options.script_parser(__doc__, Path(__file__))
    parts: dict[str, tuple[Callable[[str], Any], tuple[str, ...]]] = {
        "compiled": (compiled, tuple(COMPILED)),
        "formulas": (formulas_of, tuple(check.families())),
        "sanitizer": (sanitized, ("kernels",)),
        "curves": (curves_of, ARCHS),
        "seeds": (seeds_of, ARCHS),
        "busy": (busy, ARCHS),
    }
    about = "(default: all)"
    parser.add_argument("--parts", nargs="+", choices=list(parts), default=list(parts), help=about)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what is found there")
    parser.add_argument("--jobs", type=int, default=12, help="processes (default: %(default)s)")
    parser.add_argument(SANITIZED, action="store_true", help="check the kernels of Triton, no more")
    args = parser.parse_args()
    options.check_positive(args, "jobs")
    if not torch.cuda.is_available():
        raise UserError("torch finds no CUDA device here")
    if args.sanitized:
        check_kernels()
        return
    # what deterministic products need, known before the first of them
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "2")
    found: dict[str, Any] = {"device": torch.cuda.get_device_name(), **results.surroundings()}
    todo = [(part, one) for part in parts if part in args.parts for one in parts[part][1]]
    # what is timed runs alone
    for jobs, alone in ((args.jobs, False), (1, True)):
        asked = [(part, one) for part, one in todo if (part == "busy") == alone]
        for part, one, answer in _answers(parts, asked, jobs):
            found.setdefault(part, {})[one] = answer
            tqdm.write(f"{part} {one}: {answer}")
            if args.json:
                write_json(args.json, found)


def _answers(
    parts: Mapping[str, tuple[Callable[[str], Any], Any]],
    asked: Sequence[tuple[str, str]],
    jobs: int,
) -> Iterator[tuple[str, str, Any]]:
    """Answers as they come, each from a process of its own; a process that dies is one, too."""
    spawn = multiprocessing.get_context("spawn")
    with ThreadPoolExecutor(jobs) as threads:
        futures = {
            threads.submit(_in_process, spawn, parts[p][0], one): (p, one) for p, one in asked
        }
        for future in tqdm(as_completed(futures), total=len(futures), unit="part", disable=None):
            yield *futures[future], future.result()


def _in_process(spawn: Any, function: Callable[[str], Any], name: str) -> Any:
    with ProcessPoolExecutor(1, spawn) as process:
        try:
            return process.submit(answered, function, name).result()
        except BrokenProcessPool:
            return "its process died"


if __name__ == "__main__":
    sys.exit(run_command(main, stopped=""))
