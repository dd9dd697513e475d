"""Memory and time of Hypformer against the length, linear and softmax attention.

Every row is a process of its own, so that its peak memory is its own. A training step is forward,
backward and Adam on a pair of random sentences of the given length; a decoding step is one position
of a hypothesis that was decoded up to there.

On a processor, times are CPU seconds of the one thread in use, so that other programs do not count,
and memory is the peak of the resident set less what the process held before the first step. On a
GPU they are seconds until the device is done and the peak of what torch allocated.

example: python recipes/benchmark/scaling.py --attention linear --lengths 512 1024 2048 4096 8192
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

LENGTHS = (512, 1024, 2048, 4096, 8192, 16384, 32768)
ATTENTIONS = ("linear", "softmax")
LONGEST_SOFTMAX = 8192
"""Of the default lengths; beyond, a step on a processor takes minutes."""
POSITIONS = (100, 4000)
VOCABULARY = 1000
STEPS = 3
"""Training steps timed after the first, which warms up; the median counts."""
WINDOW = 40
"""Decoding steps timed around a position; the median counts."""
MIB = 2**20


def build(arch: str, longest: int, attention: str, device: str) -> Any:
    """A fresh model that takes sentences of ``longest`` tokens, over random words."""
    from fairseq import models
    from fairseq.data import Dictionary

    import hyptrans.models  # noqa: F401 - registers the architectures

    words = Dictionary()
    for i in range(VOCABULARY - len(words)):
        words.add_symbol(f"w{i}")
    cfg = models.MODEL_DATACLASS_REGISTRY[arch]()
    cfg.max_source_positions = cfg.max_target_positions = longest
    cfg.attention = attention
    task = SimpleNamespace(source_dictionary=words, target_dictionary=words)
    return models.MODEL_REGISTRY[arch].build_model(cfg, task).to(device)


def tokens(length: int, device: str) -> Any:
    """One sentence of random words ``[1, length]``."""
    import torch

    return torch.randint(4, VOCABULARY, (1, length), device=device)


def clock(device: str) -> float:
    """CPU seconds of this process, or seconds when the GPU has finished."""
    if device == "cpu":
        return time.process_time()
    import torch

    torch.cuda.synchronize()
    return time.perf_counter()


def resident_peak() -> int:
    """Largest resident set of this process so far, in bytes."""
    # Linux counts in KiB, macOS in bytes
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
        1 if sys.platform == "darwin" else 1024
    )


def seconds_of(steps: Iterator[None], device: str) -> list[float]:
    """Time of every step of an iterator."""
    times = [clock(device)]
    times += [clock(device) for _ in steps]
    return [end - start for start, end in pairwise(times)]


def training(arch: str, length: int, attention: str, device: str) -> dict[str, float]:
    """Seconds and MiB of a training step."""
    import torch

    torch.manual_seed(1)
    model = build(arch, length, attention, device).train()
    optimizer = torch.optim.Adam(model.parameters())
    source, previous, target = (tokens(length, device) for _ in range(3))

    def steps() -> Iterator[None]:
        for _ in range(1 + STEPS):
            logits, _ = model(source, None, previous)
            torch.nn.functional.cross_entropy(logits[0], target[0]).backward()
            optimizer.step()
            optimizer.zero_grad()
            yield

    before = resident_peak() if device == "cpu" else torch.cuda.memory_allocated()
    seconds = statistics.median(seconds_of(steps(), device)[1:])
    peak = resident_peak() if device == "cpu" else torch.cuda.max_memory_allocated()
    return {"seconds": seconds, "mib": (peak - before) / MIB}


def decoding(arch: str, position: int, attention: str, device: str) -> dict[str, float]:
    """Seconds of a decoding step around a position."""
    import torch

    torch.manual_seed(1)
    model = build(arch, position + WINDOW, attention, device).eval()
    hypothesis = tokens(position + WINDOW, device)
    state: dict = {}

    def steps(first: int, last: int) -> Iterator[None]:
        for i in range(first, last):
            model.decoder(hypothesis[:, : i + 1], encoder_out, state)
            yield

    with torch.no_grad():
        encoder_out = model.encoder(tokens(32, device))
        for _ in steps(0, position):
            pass
        times = seconds_of(steps(position, position + WINDOW), device)
    return {"seconds": statistics.median(times)}


def in_a_process(
    what: str, size: int, attention: str, options: argparse.Namespace
) -> dict[str, float]:
    """Measure in a fresh process.

    Raises:
        SystemExit: it failed, for example for lack of memory.
    """
    command = [sys.executable, __file__, "--measure", what, str(size), "--arch", options.arch]
    command += ["--attention", attention, "--device", options.device]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"measuring {what} at {size} failed with exit code {done.returncode}")
    return json.loads(done.stdout.splitlines()[-1])


def lengths_of(attention: str, options: argparse.Namespace) -> list[int]:
    """The lengths asked for, or the default ones that the attention is fit for."""
    if options.lengths is not None:
        return list(options.lengths)
    return [n for n in LENGTHS if attention == "linear" or n <= LONGEST_SOFTMAX]


def report(attention: str, options: argparse.Namespace, write: Callable[[str], object]) -> None:
    """Measure everything of an attention and write the tables, row by row."""
    write(f"{options.arch}, --attention {attention}, batch of 1, {options.device}\n\n")
    write(f"{'length':>8}{'seconds':>11}{'growth':>8}{'peak MiB':>11}{'growth':>8}\n")
    last: dict[str, float] = {}
    for length in lengths_of(attention, options):
        row = in_a_process("training", length, attention, options)
        growth = {name: f"{row[name] / last[name]:.2f}" if last else "" for name in row}
        write(
            f"{length:>8}{row['seconds']:>11.3f}{growth['seconds']:>8}"
            f"{row['mib']:>11.0f}{growth['mib']:>8}\n"
        )
        last = row
    write(f"\n{'position':>8}{'ms a step':>11}{'ratio':>8}\n")
    first = 0.0
    for position in options.positions:
        milliseconds = in_a_process("decoding", position, attention, options)["seconds"] * 1000
        first = first or milliseconds
        write(f"{position:>8}{milliseconds:>11.2f}{milliseconds / first:>8.2f}\n")


def main() -> None:
    """Print the tables, or measure one row."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--arch", default="hypformer_tiny", help="named architecture (default: hypformer_tiny)"
    )
    parser.add_argument(
        "--attention", choices=ATTENTIONS, nargs="+", default=ATTENTIONS, help="(default: both)"
    )
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="(default: cpu)")
    parser.add_argument(
        "--lengths",
        type=int,
        nargs="*",
        help=f"tokens of a sentence in training (default: {' '.join(map(str, LENGTHS))}; softmax "
        f"to {LONGEST_SOFTMAX})",
    )
    parser.add_argument(
        "--positions",
        type=int,
        nargs="*",
        default=POSITIONS,
        help=f"positions in decoding (default: {' '.join(map(str, POSITIONS))})",
    )
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.measure:
        for attention in options.attention:
            report(attention, options, lambda text: print(text, end="", flush=True))
            print()
        return
    import torch

    torch.set_num_threads(1)
    what, size = options.measure
    measure = {"training": training, "decoding": decoding}[what]
    print(json.dumps(measure(options.arch, int(size), options.attention[0], options.device)))


if __name__ == "__main__":
    main()
