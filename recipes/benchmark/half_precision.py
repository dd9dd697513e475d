"""Loss curves of the same training in float32 and in half precision, side by side.

Models of the size of ``*_tiny`` learn to copy or to reverse sentences, as the first token says,
from the same start on the same batches: in float32, under autocast to bfloat16 and under autocast
to float16 with a gradient scaler; where attention is that of the Lorentz model, also with
``--attention-precision half``. Printed are means of the loss per token, in nats, over every 20
updates, and the largest difference from those of float32.

example: python -m recipes.benchmark.half_precision --device cpu --updates 60 --models hybonet
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from collections.abc import Iterator

import torch
from fairseq import utils
from fairseq.criterions.label_smoothed_cross_entropy import label_smoothed_nll_loss
from fairseq.models import FairseqEncoderDecoderModel
from fairseq.optim.adam import Adam
from torch import Tensor
from tqdm import tqdm

from hyptrans.support.errors import UserError, run_command
from recipes.benchmark import contenders, timing
from recipes.benchmark.contenders import Size
from recipes.common import options

LENGTH, SENTENCES = 12, 64
TINY = Size("tiny", LENGTH + 2, layers=2, dropout=0.0)
MODELS: dict[str, tuple[str, dict[str, str]]] = {
    "hybonet": ("hybonet", {}),
    "han": ("han", {}),
    "hypformer": ("hypformer", {}),
    "hypformer_softmax": ("hypformer", {"hypformer_attention": "softmax"}),
}
PRECISIONS = {"float32": None, "bfloat16": torch.bfloat16, "float16": torch.float16}
HALF_ATTENTION = ("hybonet", "hypformer_softmax")
PERIOD = 20
RATE, WARM_UP = 2e-3, 40
INITIAL_SCALE = 2.0**7
"""Of the loss in float16: fairseq's. With torch's, 2^16, the first updates are skipped."""
PAD, EOS, FIRST = 1, 2, 4
COPY, REVERSE = FIRST, FIRST + 1
WORDS = range(FIRST + 2, FIRST + 42)
"""Few of the vocabulary, so that a short training learns them."""


def _arguments() -> argparse.Namespace:
    parser = options.script_parser(__doc__)
    add = parser.add_argument
    timing.add_device(parser, timing.best_device())
    add("--updates", type=int, default=200, metavar="N", help="optimizer steps of each training")
    names = ",".join(MODELS)
    add("--models", default=names, metavar="A,B", help=f"which to train (default: {names})")
    return parser.parse_args()


def main() -> None:
    """Train every architecture in every precision and print the curves."""
    args = _arguments()
    options.check_positive(args, "updates")
    timing.check_device(args.device)
    chosen = args.models.split(",")
    if unknown := [name for name in chosen if name not in MODELS]:
        raise UserError(f"--models {','.join(unknown)}: there are {', '.join(MODELS)}")
    for name in chosen:
        curves = {}
        for title, training in tqdm(trainings(name), desc=name, unit="training", disable=None):
            curves[title] = means(train(*training, args.device, args.updates))
        print(report(name, curves, args.updates))
        wrong = [n for n, curve in curves.items() if not all(map(math.isfinite, curve))]
        if wrong:
            raise UserError(f"{name}: the loss in {', '.join(wrong)} is not finite")


def trainings(name: str) -> list[tuple[str, tuple[str, dict[str, str], torch.dtype | None]]]:
    """Title, architecture, its options and precision of every training of a model."""
    arch, given = MODELS[name]
    found = [(title, (arch, given, dtype)) for title, dtype in PRECISIONS.items()]
    if name in HALF_ATTENTION:
        half = {**given, "attention_precision": "half"}
        found += [(f"{t}, attention too", (arch, half, d)) for t, d in PRECISIONS.items() if d]
    return found


def batches(device: str) -> Iterator[tuple[Tensor, Tensor]]:
    """Sources and targets ``[SENTENCES, LENGTH + 2]`` and ``[SENTENCES, LENGTH + 1]``, for ever."""
    rng = torch.Generator().manual_seed(1)
    end = torch.full((SENTENCES, 1), EOS)
    while True:
        words = torch.randint(WORDS[0], WORDS[-1] + 1, (SENTENCES, LENGTH), generator=rng)
        task = torch.randint(COPY, REVERSE + 1, (SENTENCES, 1), generator=rng)
        target = torch.where(task == COPY, words, words.flip(-1))
        yield (
            torch.cat([task, words, end], dim=-1).to(device),
            torch.cat([target, end], dim=-1).to(device),
        )


def train(
    arch: str,
    given: dict[str, str],
    precision: torch.dtype | None,
    device: str,
    updates: int,
) -> list[float]:
    """Losses per token, in nats, of every update."""
    model = contenders.build(arch, device, {**TINY.fields(), **given}).train()
    parameters = list(model.parameters())
    optimizer = Adam(parameters, lr=RATE, betas=(0.9, 0.98))
    half = precision == torch.float16
    scaler = torch.amp.GradScaler(device, init_scale=INITIAL_SCALE, enabled=half)
    losses = []
    for update, (source, target) in enumerate(itertools.islice(batches(device), updates)):
        for group in optimizer.param_groups:
            group["lr"] = RATE * min(1, (update + 1) / WARM_UP)
        with torch.autocast(device, dtype=precision, enabled=precision is not None):
            smoothed, plain = loss_of(model, source, target)
        scaler.scale(smoothed).backward()
        scaler.unscale_(optimizer)
        utils.clip_grad_norm_(parameters, 0.5)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        losses.append(plain.detach())
    return torch.stack(losses).tolist()


def loss_of(
    model: FairseqEncoderDecoderModel, source: Tensor, target: Tensor
) -> tuple[Tensor, Tensor]:
    """The loss per token with label smoothing, which is trained on, and without."""
    previous = target.roll(1, dims=-1)
    lengths = torch.full((len(source),), source.size(1), device=source.device)
    logits = model.get_normalized_probs(model(source, lengths, previous), log_probs=True)
    smoothed, plain = label_smoothed_nll_loss(
        logits.flatten(0, 1), target.view(-1, 1), 0.1, ignore_index=PAD
    )
    return smoothed / target.numel(), plain / target.numel()


def means(losses: list[float]) -> list[float]:
    """Means over every ``PERIOD`` updates; the last may be over fewer."""
    parts = (losses[i : i + PERIOD] for i in range(0, len(losses), PERIOD))
    return [sum(part) / len(part) for part in parts]


def report(name: str, curves: dict[str, list[float]], updates: int) -> str:
    """The curves as columns, and how far they come apart."""
    lines = [f"{name}, loss per token", "updates  " + "  ".join(f"{n:>9}" for n in curves)]
    for i, row in enumerate(zip(*curves.values(), strict=True)):
        numbers = "  ".join(f"{x:{max(9, len(n))}.4f}" for n, x in zip(curves, row, strict=True))
        lines.append(f"{min((i + 1) * PERIOD, updates):7}  {numbers}")
    expected, *others = curves.items()
    for other, curve in others:
        apart = max(abs(a - b) for a, b in zip(curve, expected[1], strict=True))
        lines.append(f"largest difference of {other} from {expected[0]}: {apart:.4f}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(run_command(main, stopped=""))
