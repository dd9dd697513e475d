"""Compare the speed of every architecture with two Transformers, in turn in one process.

A training step is forward, loss, backward, clipping and Adam on about 4,096 target tokens; decoding
is a beam search (beam 5, 32 sentences, 32 tokens each). All contenders of a row take turns for
several rounds; a ratio is the median over the rounds of the Transformer's time divided by the
architecture's (above 1: the architecture is faster). One column compares with fairseq's transformer
as a user runs it, the other with the package's Transformer. That one shares matrix products and
attention kernel with the hyperbolic layers, so the remaining difference is due to the geometry.

example: python -m recipes.benchmark.speed --rows hybonet --json speed.json
"""

import argparse
import ctypes
import re
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from tqdm import tqdm

from hyptrans.support.errors import UserError, run_command
from hyptrans.support.files import write_json
from recipes.benchmark import contenders
from recipes.benchmark.contenders import FAIRSEQ, MANIFOLD, SOFTMAX, TWIN, WHOLE, Size
from recipes.benchmark.timing import in_turn, processor
from recipes.common import options, results
from recipes.common.table import markdown

SHORT, MEDIUM, WIDE = Size("wmt_d64", 32), Size("wmt_d64", 512), Size("base", 32)
LONG = [Size("base", n, layers=1, dropout=0.0, target_tokens=n) for n in (4096, 8192)]
SMALL = [Size("tiny", n, layers=2, target_tokens=n) for n in (512, 1024, 2048, 4096, 8192)]
PRECISIONS = {"float32": None, "bfloat16": torch.bfloat16, "float16": torch.float16}
MAKERS: Mapping[str, Callable[..., Callable[[], None]]] = {
    "train": contenders.training_step,
    "length": contenders.training_step,
    "loss": partial(contenders.training_step, updates=False),
    "decode": contenders.decoding,
}


@dataclass(frozen=True)
class Comparison:
    """Architectures to compare at one size.

    Attributes:
        rounds: turns of each contender.
        against: the contender whose time is divided by each architecture's.
    """

    phase: str
    size: Size
    archs: Sequence[str]
    rounds: int
    against: str = FAIRSEQ

    @property
    def contenders(self) -> list[str]:
        """Return the names of all models that take turns."""
        return [self.against, *([TWIN] if self.against == FAIRSEQ else []), *self.archs]


ALL = ("hybonet", "hybonet_plus", "han", "hypformer", "hvt")
COMPARISONS = (
    Comparison("train", SHORT, (*ALL, MANIFOLD), 9),
    Comparison("train", MEDIUM, ALL[:1], 5),
    Comparison("train", WIDE, ALL, 2),
    *(Comparison("train", size, ("hypformer",), 3) for size in LONG),
    Comparison("decode", SHORT, ALL, 7),
    Comparison("decode", WIDE, ALL[:1], 3),
    *(Comparison("loss", SHORT, (arch,), 5, f"{arch}{WHOLE}") for arch in ("hybonet", TWIN)),
    *(Comparison("length", size, ("hypformer",), 3, SOFTMAX) for size in SMALL),
)
COLUMNS = {
    **{"arch": ("architecture", ""), "step": ("step", ""), "dim": ("d", ".0f")},
    **{"length": ("N", ",.0f"), "sides": ("layers", ""), "seconds": ("s", ".3g")},
    **{"against": ("against", ""), "ratio": ("ratio", ".2f"), "target": ("to reach", ".2f")},
    **{"ratio_sdpa": ("ratio to SDPA twin", ".2f"), "ratio_same": ("ratio, same products", ".2f")},
    **{"over_floor": ("over floor", ".2f"), "peaks": ("peak, MiB (of the other)", "")},
    **{"speed": ("tokens per second", ",.0f")},
}
"""Titles and formats of the table's columns; only earlier records have some of them."""


def main() -> None:
    """Measure the requested rows and print the table."""
    args = _arguments()
    if args.threads:
        torch.set_num_threads(args.threads)
    comparisons = chosen(args.rows)
    if not comparisons:
        raise UserError(f"--rows {args.rows!r} is not part of any row's name")
    found: dict[str, Any] = {
        "script": Path(__file__).name,
        "device": torch.cuda.get_device_name()
        if args.device == "cuda"
        else f"{processor()}, {torch.get_num_threads()} threads",
        "rows": [],
        **results.surroundings(),
    }
    todo = [(precision, comparison) for comparison in comparisons for precision in args.precision]
    for precision, comparison in tqdm(todo, unit="row", disable=None):
        turns = comparison.rounds
        rounds = args.rounds or max(1, turns // 3 if args.quick else turns)
        rows = measure(comparison, rounds, args.device, precision, peaks=not args.quick)
        found["rows"] += rows
        tqdm.write(table({**found, "rows": rows}))
        if args.json:
            write_json(args.json, found)


def _arguments() -> argparse.Namespace:
    parser, cuda = options.script_parser(__doc__, Path(__file__)), torch.cuda.is_available()
    add = parser.add_argument
    about = "only rows whose name contains TEXT, such as hybonet, decode or 'train d=512'"
    add("--rows", default="", metavar="TEXT", help=about)
    options.add_number(parser, "--rounds", None, "rounds per row (default: depends on the row)")
    about = "a third of the rounds, without peak memory"
    add("--quick", action="store_true", help=about)
    default = "cuda" if cuda else "cpu"
    add("--device", default=default, choices=("cpu", "cuda"), help="(default: %(default)s)")
    options.add_number(parser, "--threads", None, "CPU threads (default: torch's)")
    about = "precision of autocast, for twin and architecture (default: float32, without it)"
    add("--precision", nargs="+", choices=list(PRECISIONS), default=["float32"], help=about)
    add("--json", type=Path, metavar="FILE", help="file to write the rows to")
    args = parser.parse_args()
    if args.device == "cuda" and not cuda:
        raise UserError("--device cuda: torch finds no CUDA device here")
    return args


def chosen(text: str) -> list[Comparison]:
    """Return the comparisons, restricted to architectures whose row name contains the text."""
    found = []
    for one in COMPARISONS:
        about = f"{one.phase} d={one.size.dim} N={one.size.length}"
        if kept := [arch for arch in one.archs if text in f"{arch} {about}"]:
            found.append(replace(one, archs=kept))
    return found


def measure(
    comparison: Comparison, rounds: int, device: str, precision: str, *, peaks: bool
) -> list[dict[str, Any]]:
    """Time a comparison: each contender runs once to warm up, then all take turns.

    Returns:
        A row per architecture: times in seconds and, if ``peaks``, memory in MiB.
    """
    size, against = comparison.size, comparison.against
    names, make = comparison.contenders, MAKERS[comparison.phase]
    steps, most = {}, {}
    for name in names:
        steps[name] = make(name, size, device, PRECISIONS[precision])
        # the very first step also sets up what later ones reuse
        steps[name]()
        most[name] = peak_of(steps[name], device) if peaks else None
    seconds = in_turn({name: partial(_whole, step, device) for name, step in steps.items()}, rounds)
    return [
        {
            "arch": arch,
            "phase": comparison.phase,
            "precision": precision,
            "dim": size.dim,
            "length": size.length,
            "layers": size.layers,
            "seconds": statistics.median(seconds[arch]),
            "tokens": size.tokens(comparison.phase),
            "ratio": ratio(seconds[against], seconds[arch]),
            "ratio_same": ratio(seconds[TWIN], seconds[arch]) if TWIN in names[1:2] else None,
            "peak_mb": most[arch],
            "twin_peak_mb": most[against],
            "against": against,
        }
        for arch in comparison.archs
    ]


def _whole(step: Callable[[], object], device: str) -> None:
    step()
    if device == "cuda":
        torch.cuda.synchronize()


def ratio(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the median over the rounds of one time divided by the other."""
    return statistics.median(a / b for a, b in zip(one, other, strict=True))


def peak_of(step: Callable[[], object], device: str) -> float:
    """Return the MiB that a step needs on top of the memory held before it.

    Measured is torch's allocated memory on a GPU, else the peak resident set on Linux, else NaN.
    """
    if device == "cuda":
        torch.cuda.synchronize()
        held = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        _whole(step, device)
        return (torch.cuda.max_memory_allocated() - held) / 2**20
    status = Path("/proc/self/status")
    try:
        # memory that malloc keeps for reuse would hide what the step takes
        ctypes.CDLL("libc.so.6").malloc_trim(0)
        status.with_name("clear_refs").write_text("5", encoding="utf-8")
    except OSError:
        return float("nan")
    before = status.read_text(encoding="utf-8")
    step()
    held, most = (
        int(re.search(rf"{name}:\s+(\d+)", text)[1])  # type: ignore[index]
        for name, text in (("VmRSS", before), ("VmHWM", status.read_text(encoding="utf-8")))
    )
    return (most - held) / 1024


def table(found: Mapping[str, Any]) -> str:
    """Write the rows as Markdown, with each column that at least one row has."""
    frame = pd.DataFrame([{**row, **_combined(row)} for row in found["rows"]])
    frame = frame.reindex(columns=COLUMNS).dropna(axis="columns", how="all")
    lines = markdown(frame.rename(columns=lambda key: COLUMNS[key][0]), dict(COLUMNS.values()))
    versions = found["versions"]
    return f"{lines}\n\n{found['device']}; torch {versions['torch']}, fairseq {versions['fairseq']}"


def _combined(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cells that combine several fields of a row."""
    found: dict[str, Any] = {"step": row["phase"]}
    if row.get("precision") not in (None, "float32"):
        found["step"] += f", {row['precision']}"
    if row.get("layers"):
        found["sides"] = f"{row['layers']}+{row['layers']}"
    if row.get("peak_mb"):
        found["peaks"] = f"{row['peak_mb']:,.0f} ({row['twin_peak_mb']:,.0f})"
    if row.get("tokens"):
        found["speed"] = row["tokens"] / row["seconds"]
    return found


if __name__ == "__main__":
    sys.exit(run_command(main, stopped=""))
