"""Accuracy of ``--attention-precision half`` against the same attention in float64; its speed.

Errors are relative: of the points that come out, their root mean square; of the gradient of the
queries, of its length. Beside each stands what casting the coordinates of the points to half
precision gives, and what float32 gives. Values are close together (about 0.3 apart), in two such
groups far from each other, or spread out in all directions, all at one time. ``--speed`` prints
instead the time of the same attention in float32 over that in half precision, forward and
backward: above 1 where half precision is faster.

example: python -m recipes.benchmark.half_attention --width 64
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F

from hyptrans.geometry import lorentz
from hyptrans.layers.lorentz.mix import lorentz_mix
from hyptrans.support import tables
from hyptrans.support.errors import UserError, run_command
from recipes.benchmark import timing
from recipes.common import options

TAU = 8.0
SENTENCES, HEADS, LENGTH = 4, 4, 64
LENGTHS, TOKENS, ROUNDS = (32, 512, 2048), 2048, 6
NEAR = 0.2
"""Size of the noise that tells apart values close together."""
PRECISIONS = {"bfloat16": torch.bfloat16, "float16": torch.float16}
Attention = Callable[[Tensor, Tensor, Tensor], Tensor]


def _arguments() -> argparse.Namespace:
    parser = options.script_parser(__doc__)
    add = parser.add_argument
    add("--width", type=int, default=16, help="numbers of a point of a head (default: 16)")
    add(
        "--times",
        default="1.5,3,6,11,50",
        metavar="T,T",
        help="times of the values, at least 1 (default: 1.5,3,6,11,50)",
    )
    timing.add_device(parser)
    add("--speed", action="store_true", help="time it instead")
    return parser.parse_args()


def main() -> None:
    """Print the table of errors, or of speeds."""
    args = _arguments()
    if args.width < 2:
        raise UserError(f"--width must be at least 2, a time and a space number, got {args.width}")
    times = _times(args.times)
    timing.check_device(args.device)
    print(
        speeds(args.width, args.device) if args.speed else accuracy(args.width, times, args.device)
    )


def accuracy(width: int, times: list[float], device: str) -> str:
    """Errors of all placements."""
    header = ["values", "time", "precision"]
    header += ["points", "points, cast", "points, float32"]
    header += ["gradient", "gradient, cast", "gradient, float32"]
    cells = []
    for place in (close, groups, spread):
        for time in times:
            spaces = [x.to(device) for x in inputs(place, time, width)]
            for name, dtype in PRECISIONS.items():
                points, gradients = zip(*errors(spaces, dtype), strict=True)
                numbers = [f"{error:.1g}" for error in (*points, *gradients)]
                cells.append([place.__name__, f"{time:g}", name, *numbers])
    return tables.markdown(header, cells)


def speeds(width: int, device: str) -> str:
    """Of batches of the same number of tokens, in turn; medians of the ratios."""
    cells = []
    for length in LENGTHS:
        shape = max(1, TOKENS // length), HEADS, length, width
        points = lorentz.lift(torch.randn(*shape[:-1], width - 1, device=device))
        leaves = [(NEAR * points).requires_grad_() for _ in range(3)]

        def step(half: torch.dtype | None, leaves: list[Tensor] = leaves) -> None:
            out = lorentz_mix(*leaves, c=1.0, allowed=None, is_causal=False, half=half)
            torch.autograd.grad(out.sum(), leaves)

        steps = {dtype: partial(step, dtype) for dtype in (None, *PRECISIONS.values())}
        seconds = timing.in_turn(steps, ROUNDS, device)
        # the first round warms up
        ratios = [timing.ratio(seconds[None][1:], seconds[d][1:]) for d in PRECISIONS.values()]
        cells.append([f"{length:,}", *(f"{ratio:.2f}" for ratio in ratios)])
    return tables.markdown(["length", *PRECISIONS], cells)


def _times(text: str) -> list[float]:
    try:
        times = [float(part) for part in text.split(",")]
    except ValueError:
        raise UserError(f"--times must be numbers with commas between them, got {text!r}") from None
    if not all(1 <= time < math.inf for time in times):
        raise UserError(f"--times must be at least 1, that of the origin, got {text!r}")
    return times


def spread(rng: torch.Generator, *shape: int, time: float) -> Tensor:
    """Space parts in all directions, at one time."""
    space = torch.randn(*shape, generator=rng, dtype=torch.float64)
    return space / space.norm(dim=-1, keepdim=True) * math.sqrt(time**2 - 1)


def close(rng: torch.Generator, *shape: int, time: float) -> Tensor:
    """Space parts around one point a head."""
    noise = torch.randn(*shape, generator=rng, dtype=torch.float64) / shape[-1] ** 0.5
    return spread(rng, *shape[:-2], 1, shape[-1], time=time) + NEAR * noise


def groups(rng: torch.Generator, *shape: int, time: float) -> Tensor:
    """Space parts around two points a head."""
    first, second = (close(rng, *shape, time=time) for _ in range(2))
    return torch.where(torch.arange(shape[-2])[:, None] < shape[-2] // 2, first, second)


def inputs(place: Callable[..., Tensor], time: float, width: int) -> list[Tensor]:
    """Space parts of queries, each near a key, of keys and of values, ``[B, H, T, width - 1]``."""
    rng = torch.Generator().manual_seed(1)
    shape = SENTENCES, HEADS, LENGTH, width - 1
    key, value = (place(rng, *shape, time=time) for _ in range(2))
    query = key + torch.randn(shape, generator=rng, dtype=torch.float64) / width**0.5
    return [query, key, value]


def errors(spaces: list[Tensor], dtype: torch.dtype) -> list[tuple[float, float]]:
    """Of points and of gradients: of this precision, of coordinates cast to it, of float32."""

    def half(*points: Tensor) -> Tensor:
        return lorentz_mix(*points, c=1.0, allowed=None, is_causal=False, half=dtype)

    def cast(*points: Tensor) -> Tensor:
        query, key, value = (x.to(dtype) for x in points)
        mean = F.scaled_dot_product_attention(query, key, value, scale=1.0)
        return lorentz.normalize(mean)

    def plain(*points: Tensor) -> Tensor:
        return lorentz_mix(*points, c=1.0, allowed=None, is_causal=False)

    expected = run(plain, spaces)
    found = [run(attention, [x.float() for x in spaces]) for attention in (half, cast, plain)]
    return [
        (
            _relative(points, expected[0]).square().mean().sqrt().item(),
            _relative(gradient.flatten(), expected[1].flatten()).item(),
        )
        for points, gradient in found
    ]


def run(attention: Attention, spaces: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Points that come out, and the gradient of a random function of them by the queries."""
    leaves = [space.clone().requires_grad_() for space in spaces]
    query, key, value = (lorentz.lift(leaf) for leaf in leaves)
    out = attention(lorentz.flip_time(query) * (2 / TAU), key, value)
    rng = torch.Generator().manual_seed(2)
    towards = torch.randn(out.shape, generator=rng, dtype=torch.float64).to(out)
    (out * towards).sum().backward()
    gradient = leaves[0].grad
    assert gradient is not None
    return out.detach().double(), gradient.double()


def _relative(found: Tensor, expected: Tensor) -> Tensor:
    return (found - expected).norm(dim=-1) / expected.norm(dim=-1)


if __name__ == "__main__":
    sys.exit(run_command(main, stopped=""))
