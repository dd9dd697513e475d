"""Speed of every architecture against its Euclidean twin, in one process, in turn.

A training step is forward, loss, backward, clipping and Adam on about 4,096 target tokens; decoding
is a beam search (beam 5, 32 sentences, 32 tokens each). All contenders of a row take turns for
several rounds; a ratio is the median over the rounds of the twin's time over the architecture's
(above 1: faster than the twin). The twin is fairseq's transformer as a user runs it; a second
column compares with a twin whose attention is torch's fused kernel everywhere. The floor is the
matrix products and attention calls alone, of a Transformer of the same size, forward and backward.

Other rows have another opponent: the loss in tiles stands against fairseq's (forward, loss and
backward), linear attention against softmax attention over the length, and with --checkpoint and
--data, ``hyptrans`` against ``fairseq-generate`` on a prepared test set.

example: python -m recipes.benchmark.speed --rows hybonet --json speed.json
"""

from __future__ import annotations

import argparse
import platform
import re
import statistics
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from hyptrans.support import tables
from hyptrans.support.errors import UserError, run_command
from hyptrans.support.files import write_json
from recipes.benchmark import contenders, timing, translate
from recipes.benchmark.contenders import (
    COMPILED,
    EAGER,
    FLOOR,
    FOREACH,
    INDUCTOR,
    MANIFOLD,
    SOFTMAX,
    TWIN,
    TWIN_SDPA,
    WHOLE,
    Size,
)
from recipes.common import options, results

HERE = Path(__file__).resolve().parent
SHORT, MEDIUM, WIDE = Size("wmt_d64", 32), Size("wmt_d64", 512), Size("base", 32)
LONG = {
    length: Size("base", length, layers=1, dropout=0.0, target_tokens=length)
    for length in (4096, 8192, 16384)
}
SMALL = [
    Size("tiny", length, layers=2, target_tokens=length) for length in (512, 1024, 2048, 4096, 8192)
]


@dataclass(frozen=True)
class Comparison:
    """Architectures of one size.

    Attributes:
        targets: the ratio that each should reach.
        rounds: turns of each, by the devices that the comparison is made on.
        against: whose time is divided by theirs.
    """

    phase: str
    size: Size
    targets: dict[str, float | None]
    rounds: dict[str, int]
    against: str = TWIN

    @property
    def contenders(self) -> list[str]:
        """All that take turns."""
        beside = [TWIN_SDPA] if self.against == TWIN else []
        floor = [FLOOR] if self.against == TWIN and self.phase == "train" else []
        return [self.against, *beside, *self.targets, *floor]


OTHERS: dict[str, float | None] = dict.fromkeys(("hybonet_plus", "han", "hypformer", "hvt"))
WAYS = {
    EAGER: ("hybonet", *OTHERS),
    FOREACH: (TWIN, "hybonet_plus"),
    INDUCTOR: ("hybonet_plus", "hypformer", "han", "hvt"),
    COMPILED: (TWIN, "hybonet_plus"),
}
"""How else these architectures run on CUDA, beside what they do by themselves."""
COMPARISONS = (
    Comparison(
        "train",
        SHORT,
        {"hybonet": 0.95, MANIFOLD: None, **OTHERS},
        {"cpu": 9, "cuda": 5},
    ),
    Comparison("train", MEDIUM, {"hybonet": 1.10}, {"cpu": 5}),
    Comparison("train", MEDIUM, {"hybonet": 1.20}, {"cuda": 10}),
    Comparison(
        "train",
        WIDE,
        {"hybonet": 1.00, "hybonet_plus": None, "han": 0.85, "hypformer": None, "hvt": 0.50},
        {"cpu": 2, "cuda": 5},
    ),
    Comparison("train", LONG[4096], {"hypformer": 1.6}, {"cpu": 3, "cuda": 5}),
    Comparison("train", LONG[8192], {"hypformer": 2.5}, {"cpu": 3}),
    Comparison("train", LONG[16384], {"hypformer": 4.0}, {"cuda": 5}),
    Comparison("decode", SHORT, {"hybonet": 0.95, **OTHERS}, {"cpu": 7, "cuda": 3}),
    Comparison("decode", WIDE, {"hybonet": 0.95}, {"cpu": 3, "cuda": 3}),
    *(
        Comparison("loss", SHORT, {arch: None}, {"cpu": 5, "cuda": 10}, f"{arch}{WHOLE}")
        for arch in ("hybonet", TWIN)
    ),
    *(
        Comparison("length", size, {"hypformer": None}, {"cpu": 3, "cuda": 10}, SOFTMAX)
        for size in SMALL
    ),
    # last, as the first step of a compiled formula or layer takes a minute
    *(
        Comparison("train", size, dict.fromkeys(f"{arch}{way}" for arch in archs), {"cuda": 5})
        for way, archs in WAYS.items()
        for size in (SHORT, WIDE)
    ),
)
PRECISIONS = {"float32": None, "bfloat16": torch.bfloat16, "float16": torch.float16}
MAKERS: Mapping[str, Callable[..., Callable[[], None]]] = {
    "train": contenders.training_step,
    "length": contenders.training_step,
    "loss": partial(contenders.training_step, updates=False),
    "decode": contenders.decoding,
}


def _arguments() -> argparse.Namespace:
    parser, best = options.script_parser(__doc__, Path(__file__)), timing.best_device()
    add = parser.add_argument
    about = "only rows with this in their name, such as hybonet, decode or 'train d=512'"
    add("--rows", default="", metavar="TEXT", help=about)
    add("--rounds", type=int, metavar="N", help="turns of each (default: by row)")
    about = "a third of the turns and no peaks of memory: all rows in about 4 minutes"
    add("--quick", action="store_true", help=about)
    add("--device", default=best, choices=("cpu", "cuda"), help="(default: %(default)s)")
    add("--threads", type=int, metavar="N", help="CPU threads (default: torch's)")
    about = "autocast to it, for twin and architecture, none for float32 (default: float32)"
    add("--precision", nargs="+", choices=list(PRECISIONS), default=["float32"], help=about)
    add("--json", type=Path, metavar="FILE", help="write the rows there")
    add("--write-readme", action="store_true", help="put results and table beside this file")
    add("--checkpoint", type=Path, metavar="FILE", help="translate with it too")
    add("--data", type=Path, metavar="DIR", help="prepared folder with the test set to translate")
    args = parser.parse_args()
    options.check_positive(args, "rounds", "threads")
    if args.device == "cuda" and best != "cuda":
        raise UserError("--device cuda: torch finds no CUDA device here")
    everything = args.checkpoint and args.device == "cpu" and not (args.rows or args.quick)
    if args.write_readme and not everything:
        raise UserError(
            "--write-readme takes all rows on --device cpu, those of --checkpoint and --data too: "
            "the table is of those"
        )
    if (args.checkpoint is None) != (args.data is None):
        raise UserError("--checkpoint and --data go together: give both, or neither")
    return args


def main() -> None:
    """Measure the rows asked for and print the table."""
    args = _arguments()
    if args.threads:
        torch.set_num_threads(args.threads)
    chosen = list(_chosen(args.device, args.rows))
    if not chosen:
        raise UserError(f"--rows {args.rows!r} is in the name of no row")
    found: dict[str, Any] = {
        "script": Path(__file__).name,
        "device": _device(args.device),
        "rows": [],
        **results.surroundings(),
    }
    todo = [(precision, comparison) for comparison in chosen for precision in args.precision]
    for precision, comparison in tqdm(todo, unit="row", disable=None):
        turns = comparison.rounds[args.device]
        rounds = args.rounds or max(1, turns // 3 if args.quick else turns)
        rows = measure(comparison, rounds, args.device, precision, peaks=not args.quick)
        found["rows"] += rows
        if len(todo) > 1:
            tqdm.write(table({**found, "rows": rows}))
        if args.json:
            write_json(args.json, found)
    if args.checkpoint:
        found["rows"] += translation(args.checkpoint, args.data, args.rounds or 3)
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


def measure(
    comparison: Comparison, rounds: int, device: str, precision: str, *, peaks: bool
) -> list[dict[str, Any]]:
    """Times of a comparison: every contender once to warm up, then in turn.

    Returns:
        A row for each architecture: times in seconds, memory in MiB where ``peaks`` are asked for.
    """
    size, against = comparison.size, comparison.against
    autocast = PRECISIONS[precision]
    names, make = comparison.contenders, MAKERS[comparison.phase]
    steps, most = {}, {}
    for name in names:
        steps[name] = make(name, size, device, autocast)
        # the first step of all sets up what the others find ready
        steps[name]()
        most[name] = timing.peak_of(steps[name], device) if peaks else None
    seconds = timing.in_turn(steps, rounds, device)

    def ratio(one: str, other: str, *, shown: bool = True) -> float | None:
        return timing.ratio(seconds[one], seconds[other]) if shown else None

    return [
        {
            "arch": arch,
            "phase": comparison.phase,
            "precision": precision,
            "dim": size.dim,
            "length": size.length,
            "layers": size.layers,
            "seconds": statistics.median(seconds[arch]),
            "tokens": contenders.tokens_of(comparison.phase, size),
            "ratio": ratio(against, arch),
            "ratio_sdpa": ratio(TWIN_SDPA, arch, shown=TWIN_SDPA in names),
            "over_floor": ratio(
                arch, FLOOR, shown=FLOOR in names and not arch.startswith("hypformer")
            ),
            "peak_mb": most[arch],
            "twin_peak_mb": most[against],
            "target": target,
            "against": against,
        }
        for arch, target in comparison.targets.items()
    ]


def translation(checkpoint: Path, data: Path, rounds: int) -> list[dict[str, Any]]:
    """Times of the translation of a test set."""
    return [
        {
            "arch": "hyptrans",
            "phase": phase,
            "seconds": statistics.median(ours for ours, _ in pairs),
            "ratio": timing.ratio([theirs for _, theirs in pairs], [ours for ours, _ in pairs]),
            "against": "fairseq-generate",
        }
        for phase, pairs in translate.in_turn(checkpoint, data, rounds).items()
    ]


def _device(device: str) -> str:
    if device == "cuda":
        return torch.cuda.get_device_name()
    return f"{processor()}, {torch.get_num_threads()} threads"


def processor() -> str:
    """Its name and what tells one from others of that name, where Linux says so."""
    information = Path("/proc/cpuinfo")
    text = information.read_text(encoding="utf-8") if information.exists() else ""
    found = dict(re.findall(r"^(model name|cpu family|model)\s*: (.+)$", text, re.MULTILINE))
    if len(found) < 3:
        return f"{platform.machine()} CPU"
    return f"{found['model name']} (family {found['cpu family']}, model {found['model']})"


def table(found: Mapping[str, Any]) -> str:
    """The rows as Markdown."""
    header = ["architecture", "step", "d", "N", "layers", "s", "against", "ratio", "to reach"]
    header += ["ratio to SDPA twin", "over floor", "peak, MiB (of the other)", "tokens a second"]
    cells = []
    for row in found["rows"]:
        layers, peak = row.get("layers"), row.get("peak_mb")
        precision = row.get("precision", "float32")
        step = row["phase"] if precision == "float32" else f"{row['phase']}, {precision}"
        what = [row["arch"], step, row.get("dim"), _number(row.get("length"), ",")]
        what.append(f"{layers}+{layers}" if layers else None)
        times = [f"{row['seconds']:.3g}", row["against"], f"{row['ratio']:.2f}"]
        names = ("target", "ratio_sdpa", "over_floor")
        others = [_number(row.get(name), ".2f") for name in names]
        memory = f"{peak:,.0f} ({row['twin_peak_mb']:,.0f})" if peak else None
        tokens = row.get("tokens")
        speed = [f"{tokens / row['seconds']:,.0f}" if tokens else None]
        cells.append([*what, *times, *others, memory, *speed])
    if not any(cell[-1] for cell in cells):
        header, cells = header[:-1], [cell[:-1] for cell in cells]
    return (
        f"{tables.markdown(header, cells)}\n\n{found['device']}; "
        f"torch {found['versions']['torch']}, fairseq {found['versions']['fairseq']}"
    )


def _number(value: float | None, form: str) -> str | None:
    return None if value is None else format(value, form)


if __name__ == "__main__":
    sys.exit(run_command(main, stopped=""))
