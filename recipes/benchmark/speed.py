"""Compare the speed of every architecture with two Transformers, in turn in one process.

A training step is forward, loss, backward, clipping and Adam on about 4,096 target tokens; decoding
is a beam search (beam 5, 32 sentences, 32 tokens each). All contenders of a row take turns for
several rounds; a ratio is the median over the rounds of the Transformer's time divided by the
architecture's (above 1: the architecture is faster). One column compares with fairseq's transformer
as a user runs it, the other with the package's Transformer. That one shares matrix products and
attention kernel with the hyperbolic layers, so the remaining difference is due to the geometry.

example: python -m recipes.benchmark.speed --rows hybonet --json speed.json
"""

import statistics
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from tqdm import tqdm

import hyptrans.fairseq  # noqa: F401 - registers the architectures, before fairseq is imported

# isort: split
from fairseq import utils
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.models import FairseqEncoderDecoderModel, build_model
from fairseq.optim.adam import Adam
from fairseq.sequence_generator import SequenceGenerator

from hyptrans.fairseq.model import TiledCrossEntropy
from hyptrans.optim import RiemannianAdam
from hyptrans.seq2seq.sizes import SIZES, flags_of
from hyptrans.support.errors import UserError, run_command
from hyptrans.support.files import write_json
from recipes.benchmark.timing import in_turn, peak_of, processor, task
from recipes.common import options, results
from recipes.common.results import markdown

VOCABULARY = 6000
TASK = task(VOCABULARY)
BEAM, SENTENCES = 5, 32
FAIRSEQ, TWIN = "fairseq's transformer", "euclidean"
"""fairseq's own model and the package's: the same formulas, but the package's uses the matrix
products and the attention kernel of the hyperbolic layers."""
MANIFOLD = "hybonet, manifold"
"""HyboNet whose embeddings are points, trained by Riemannian Adam."""
SOFTMAX = "hypformer, softmax attention"
VARIANTS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    FAIRSEQ: ("transformer", {}),
    # the fields give the size
    TWIN: ("euclidean_tiny", {}),
    MANIFOLD: ("hybonet", {"embedding_storage": "manifold"}),
    SOFTMAX: ("hypformer", {"hypformer_attention": "softmax"}),
}
WHOLE = ", fairseq's loss"
"""Suffix of a contender's name; its loss computes all logits of a batch at once."""


@dataclass(frozen=True)
class Size:
    """The size that all contenders of a comparison share.

    Attributes:
        name: a named size, such as ``wmt_d64``, which sets widths and heads.
        length: tokens per sentence, on both sides.
        layers: number of layers per side.
    """

    name: str
    length: int
    layers: int = 6
    dropout: float = 0.1
    target_tokens: int = 4096

    @property
    def dim(self) -> int:
        return int(SIZES[self.name]["width"])

    @property
    def sentences(self) -> int:
        return max(1, self.target_tokens // self.length)

    def tokens(self, phase: str) -> int:
        """Return the number of target tokens in a step."""
        return (SENTENCES if phase == "decode" else self.sentences) * self.length

    def fields(self) -> dict[str, Any]:
        """Return the configuration fields of a model of this size."""
        positions = ("max_source_positions", "max_target_positions")
        return {
            **flags_of(self.name),
            **{"encoder_layers": self.layers, "decoder_layers": self.layers},
            **{"dropout": self.dropout, "attention_dropout": 0.0},
            **dict.fromkeys(positions, max(self.length, 62) + 2),
        }


PRECISIONS = ("float32", "bfloat16", "float16")
SHORT, MEDIUM, WIDE = Size("wmt_d64", 32), Size("wmt_d64", 512), Size("base", 32)
LONG = [Size("base", n, layers=1, dropout=0.0, target_tokens=n) for n in (4096, 8192)]
SMALL = [Size("tiny", n, layers=2, target_tokens=n) for n in (512, 1024, 2048, 4096, 8192)]


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
    add("--precision", nargs="+", choices=PRECISIONS, default=["float32"], help=about)
    add("--json", type=Path, metavar="FILE", help="file to write the rows to")
    args = parser.parse_args()
    if args.device == "cuda" and not cuda:
        raise UserError("--device cuda: torch finds no CUDA device here")
    comparisons = chosen(args.rows)
    if not comparisons:
        raise UserError(f"--rows {args.rows!r} is not part of any row's name")
    torch.set_num_threads(args.threads or torch.get_num_threads())
    on_cpu = f"{processor()}, {torch.get_num_threads()} threads"
    device = torch.cuda.get_device_name() if args.device == "cuda" else on_cpu
    found: dict[str, Any] = {"script": Path(__file__).name, "device": device, "rows": []}
    found |= results.surroundings()
    todo = [(comparison, precision) for comparison in comparisons for precision in args.precision]
    for comparison, precision in tqdm(todo, unit="row", disable=None):
        rounds = args.rounds or max(1, comparison.rounds // (3 if args.quick else 1))
        rows = measure(comparison, rounds, args.device, precision, peaks=not args.quick)
        found["rows"] += rows
        tqdm.write(table({**found, "rows": rows}))
        if args.json:
            write_json(args.json, found)


def chosen(text: str) -> list[Comparison]:
    """Return the comparisons, restricted to architectures whose row name contains the text."""
    found = []
    for one in COMPARISONS:
        about = f"{one.phase} d={one.size.dim} N={one.size.length}"
        found.append(replace(one, archs=[arch for arch in one.archs if text in f"{arch} {about}"]))
    return [one for one in found if one.archs]


def build(name: str, size: Size, device: str) -> FairseqEncoderDecoderModel:
    """Build a contender, or an architecture of this package; its weights are always the same."""
    torch.manual_seed(1)
    arch, own = VARIANTS.get(name, (name, {}))
    return build_model(Namespace(_name=arch, **size.fields(), **own), TASK).to(device)


def autocast(device: str, precision: str) -> torch.autocast:
    """Return the context in which matrix products have a precision."""
    return torch.autocast(device, getattr(torch, precision), enabled=precision != "float32")


def training_step(
    name: str, size: Size, device: str, precision: str = "float32", *, updates: bool = True
) -> Callable[[], None]:
    """Return a function that runs forward, loss, backward and, if ``updates``, clipping and Adam.

    The loss is computed in tiles, or by fairseq's criterion if the name ends with ``WHOLE``.
    """
    base = name.removesuffix(WHOLE)
    model = build(base, size, device).train()
    kind = LabelSmoothedCrossEntropyCriterion if name.endswith(WHOLE) else TiledCrossEntropy
    loss_of = kind(TASK, False, 0.1)
    shape, parameters = (size.sentences, size.length), list(model.parameters())
    source, previous, target = (
        torch.randint(4, VOCABULARY, shape, device=device) for _ in range(3)
    )
    lengths = torch.full(shape[:1], size.length, device=device)
    inputs = {"src_tokens": source, "src_lengths": lengths, "prev_output_tokens": previous}
    sample = {"net_input": inputs, "target": target, "ntokens": target.numel()}
    adam = RiemannianAdam if base == MANIFOLD else Adam
    optimizer = adam(parameters, lr=1e-4, betas=(0.9, 0.98))

    def step() -> None:
        with autocast(device, precision):
            loss, *_ = loss_of(model, sample)
        (loss / sample["ntokens"]).backward()
        if updates:
            utils.clip_grad_norm_(parameters, 0.5)
            optimizer.step()
        optimizer.zero_grad()

    return step


def decoding(name: str, size: Size, device: str, precision: str = "float32") -> Callable[[], None]:
    """Return a function that translates a batch by beam search, ``length`` tokens per sentence."""
    model, words = build(name, size, device).eval(), TASK.target_dictionary
    source = torch.randint(4, VOCABULARY, (SENTENCES, size.length), device=device)
    source[:, -1] = words.eos()
    most = size.length - 1
    generator = SequenceGenerator(
        [model], words, beam_size=BEAM, max_len_a=0, max_len_b=most, min_len=most
    ).to(device)
    lengths = torch.full((SENTENCES,), size.length, device=device)
    sample = {"net_input": {"src_tokens": source, "src_lengths": lengths}}

    def step() -> None:
        with torch.no_grad(), autocast(device, precision):
            found = generator.generate([model], sample)
        assert all(len(h[0]["tokens"]) == size.length for h in found)

    return step


def measure(
    comparison: Comparison, rounds: int, device: str, precision: str, *, peaks: bool
) -> list[dict[str, Any]]:
    """Time a comparison: each contender runs once to warm up, then all take turns.

    Returns:
        A row per architecture: times in seconds and, if ``peaks``, memory in MiB.
    """
    size, phase, against = comparison.size, comparison.phase, comparison.against
    make = decoding if phase == "decode" else partial(training_step, updates=phase != "loss")
    twins = (FAIRSEQ, TWIN) if against == FAIRSEQ else (against,)
    steps, most = {}, {}
    for name in (*twins, *comparison.archs):
        steps[name] = partial(_whole, make(name, size, device, precision))
        # the very first step also sets up what later ones reuse
        steps[name]()
        most[name] = peak_of(steps[name], device) if peaks else None
    seconds = in_turn(steps, rounds)
    return [
        {
            "arch": arch,
            "phase": phase,
            "precision": precision,
            "dim": size.dim,
            "length": size.length,
            "layers": size.layers,
            "seconds": statistics.median(seconds[arch]),
            "tokens": size.tokens(phase),
            "ratio": ratio(seconds[against], seconds[arch]),
            "ratio_same": ratio(seconds[TWIN], seconds[arch]) if TWIN in twins else None,
            "peak_mb": most[arch],
            "twin_peak_mb": most[against],
            "against": against,
        }
        for arch in comparison.archs
    ]


def _whole(step: Callable[[], object]) -> None:
    step()
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()


def ratio(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the median over the rounds of one time divided by the other."""
    return statistics.median(a / b for a, b in zip(one, other, strict=True))


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
