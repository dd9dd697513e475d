"""Speed of every architecture against its Euclidean twin, in one process, in turn.

A training step is forward, loss, backward, clipping and Adam on about 4,096 target tokens; decoding
is a beam search (beam 5, 32 sentences, 32 tokens each). All contenders of a row take turns for
several rounds; a ratio is the median over the rounds of the twin's time over the architecture's
(above 1: faster than the twin). The twin is fairseq's transformer as a user runs it; a second
column compares with a twin whose attention is torch's fused kernel everywhere. The floor is the
matrix products and attention calls alone, of a Transformer of the same size, forward and backward.

example: python -m recipes.benchmark.speed --rows hybonet --json speed.json
"""

from __future__ import annotations

import argparse
import platform
import re
import statistics
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from hyptrans.support import tables
from hyptrans.support.errors import UserError, run_command
from hyptrans.support.files import write_json
from recipes.benchmark import contenders, timing
from recipes.benchmark.contenders import FLOOR, MANIFOLD, TWIN, TWIN_SDPA, Size
from recipes.common import options, results

HERE = Path(__file__).resolve().parent
SHORT, MEDIUM, WIDE = Size("wmt_d64", 32), Size("wmt_d64", 512), Size("base", 32)
LONG = {
    length: Size("base", length, layers=1, dropout=0.0, target_tokens=length)
    for length in (4096, 8192, 16384)
}


@dataclass(frozen=True)
class Comparison:
    """Architectures of one size.

    Attributes:
        targets: the ratio that each should reach.
        rounds: turns of each, by the devices that the comparison is made on.
    """

    phase: str
    size: Size
    targets: dict[str, float | None]
    rounds: dict[str, int]


OTHERS: dict[str, float | None] = dict.fromkeys(("hybonet_plus", "han", "hypformer", "hvt"))
COMPARISONS = (
    Comparison("train", SHORT, {"hybonet": 0.95, MANIFOLD: None, **OTHERS}, {"cpu": 9, "cuda": 20}),
    Comparison("train", MEDIUM, {"hybonet": 1.10}, {"cpu": 5}),
    Comparison("train", MEDIUM, {"hybonet": 1.20}, {"cuda": 20}),
    Comparison(
        "train",
        WIDE,
        {"hybonet": 1.00, "hybonet_plus": None, "han": 0.85, "hypformer": None, "hvt": 0.50},
        {"cpu": 2, "cuda": 20},
    ),
    Comparison("train", LONG[4096], {"hypformer": 1.6}, {"cpu": 3, "cuda": 10}),
    Comparison("train", LONG[8192], {"hypformer": 2.5}, {"cpu": 3}),
    Comparison("train", LONG[16384], {"hypformer": 4.0}, {"cuda": 5}),
    Comparison("decode", SHORT, {"hybonet": 0.95, **OTHERS}, {"cpu": 7, "cuda": 7}),
    Comparison("decode", WIDE, {"hybonet": 0.95}, {"cpu": 3, "cuda": 7}),
)


@dataclass(frozen=True)
class Row:
    """What was measured of one architecture in one comparison; times in seconds."""

    arch: str
    phase: str
    dim: int
    length: int
    layers: int
    seconds: float
    ratio: float
    ratio_sdpa: float
    over_floor: float | None
    peak_mb: float
    twin_peak_mb: float
    target: float | None


def _arguments() -> argparse.Namespace:
    parser = options.script_parser(__doc__)
    add = parser.add_argument
    add(
        "--rows",
        default="",
        metavar="TEXT",
        help="only rows with this in their name, such as hybonet, decode or 'train d=512'",
    )
    add("--rounds", type=int, metavar="N", help="turns of each (default: by row)")
    timing.add_device(parser, timing.best_device())
    add("--threads", type=int, metavar="N", help="CPU threads (default: torch's)")
    add("--bf16", action="store_true", help="autocast to bfloat16, for twin and architecture")
    add("--json", type=Path, metavar="FILE", help="write the rows there")
    add("--write-readme", action="store_true", help="put results and table beside this file")
    add("--profile", action="store_true", help="name the top operators of each architecture")
    return parser.parse_args()


def main() -> None:
    """Measure the rows asked for and print the table."""
    args = _arguments()
    given = [name for name in ("rounds", "threads") if getattr(args, name) is not None]
    options.check_positive(args, *given)
    if args.threads:
        torch.set_num_threads(args.threads)
    timing.check_device(args.device)
    if args.write_readme and (args.rows or args.device != "cpu"):
        raise UserError("--write-readme takes all rows on --device cpu: the table is of those")
    chosen = list(_chosen(args.device, args.rows))
    if not chosen:
        raise UserError(f"--rows {args.rows!r} is in the name of no row")
    rows = []
    for comparison in tqdm(chosen, unit="row", disable=None):
        rounds = args.rounds or comparison.rounds[args.device]
        rows += measure(comparison, rounds, args.device, args.bf16)
        if args.profile:
            profile(comparison, args.device)
    found = {
        "script": Path(__file__).name,
        "device": _device(args.device),
        "bf16": args.bf16,
        "rows": [asdict(row) for row in rows],
        **results.surroundings(),
    }
    print(table(found))
    if args.json:
        write_json(args.json, found)
    if args.write_readme:
        results.publish(HERE, found, table(found))


def _chosen(device: str, text: str) -> Iterable[Comparison]:
    """Comparisons for a device with the architectures whose row's name holds the text."""
    for comparison in COMPARISONS:
        size = comparison.size
        kept = {
            arch: target
            for arch, target in comparison.targets.items()
            if text in f"{arch} {comparison.phase} d={size.dim} N={size.length}"
        }
        if kept and device in comparison.rounds:
            yield replace(comparison, targets=kept)


def measure(comparison: Comparison, rounds: int, device: str, bf16: bool) -> list[Row]:
    """Times of a comparison: every contender once to warm up, then in turn."""
    size, training = comparison.size, comparison.phase == "train"
    autocast = torch.bfloat16 if bf16 else None
    names = [TWIN, TWIN_SDPA, *comparison.targets, *([FLOOR] if training else [])]
    make = contenders.training_step if training else contenders.decoding
    steps, peaks = {}, {}
    for name in names:
        steps[name] = make(name, size, device, autocast)
        # the first step of all sets up what the others find ready
        steps[name]()
        peaks[name] = timing.peak_of(steps[name], device)
    seconds = timing.in_turn(steps, rounds, device)

    def ratio(one: str, other: str) -> float:
        return timing.ratio(seconds[one], seconds[other])

    return [
        Row(
            arch=arch,
            phase=comparison.phase,
            dim=size.dim,
            length=size.length,
            layers=size.layers,
            seconds=statistics.median(seconds[arch]),
            ratio=ratio(TWIN, arch),
            ratio_sdpa=ratio(TWIN_SDPA, arch),
            over_floor=ratio(arch, FLOOR) if training and arch != "hypformer" else None,
            peak_mb=peaks[arch],
            twin_peak_mb=peaks[TWIN],
            target=target,
        )
        for arch, target in comparison.targets.items()
    ]


def profile(comparison: Comparison, device: str, top: int = 12) -> None:
    """Print the operators that take the most time of a step of each architecture."""
    make = contenders.training_step if comparison.phase == "train" else contenders.decoding
    for arch in comparison.targets:
        step = make(arch, comparison.size, device)
        step()
        with torch.profiler.profile() as profiled:
            step()
        key = f"self_{'cuda' if device == 'cuda' else 'cpu'}_time_total"
        print(f"\n{arch}, {comparison.phase}, d={comparison.size.dim}, N={comparison.size.length}")
        print(profiled.key_averages().table(sort_by=key, row_limit=top, max_name_column_width=50))


def _device(device: str) -> str:
    if device == "cuda":
        return torch.cuda.get_device_name()
    return f"{_processor()}, {torch.get_num_threads()} threads"


def _processor() -> str:
    """Its name and what tells one from others of that name, where Linux says so."""
    information = Path("/proc/cpuinfo")
    text = information.read_text(encoding="utf-8") if information.exists() else ""
    found = dict(re.findall(r"^(model name|cpu family|model)\s*: (.+)$", text, re.MULTILINE))
    if len(found) < 3:
        return f"{platform.machine()} CPU"
    return f"{found['model name']} (family {found['cpu family']}, model {found['model']})"


def table(found: Mapping[str, Any]) -> str:
    """The rows as Markdown."""
    header = [
        "architecture",
        "step",
        "d",
        "N",
        "layers",
        "ratio",
        "to reach",
        "ratio to SDPA twin",
        "over floor",
        "peak, MiB (twin)",
    ]
    cells = [
        [
            row["arch"],
            row["phase"],
            row["dim"],
            f"{row['length']:,}",
            f"{row['layers']}+{row['layers']}",
            f"{row['ratio']:.2f}",
            None if row["target"] is None else f"{row['target']:.2f}",
            f"{row['ratio_sdpa']:.2f}",
            None if row["over_floor"] is None else f"{row['over_floor']:.2f}",
            f"{row['peak_mb']:,.0f} ({row['twin_peak_mb']:,.0f})",
        ]
        for row in found["rows"]
    ]
    precision = ", autocast to bfloat16" if found["bf16"] else ""
    return (
        f"{tables.markdown(header, cells)}\n\n{found['device']}{precision}; "
        f"torch {found['versions']['torch']}, fairseq {found['versions']['fairseq']}"
    )


if __name__ == "__main__":
    sys.exit(run_command(main, stopped=""))
