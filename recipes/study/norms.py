"""Measure how far linear hyperboloid layers move points in a given number of optimizer steps.

One layer maps 64 points at radius 1 to points of the same width, and an optimizer maximizes their
mean radius: layers whose radii grow with the logarithm of the parameters fall behind. Runs in
float64, on one thread, in under a minute.

example: python -m recipes.study.norms
"""

import json
import math
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from hyptrans.geometry import lorentz
from hyptrans.layers.hybonet import LorentzLinear
from hyptrans.layers.hypformer import HTC
from hyptrans.support.errors import run_command
from hyptrans.support.files import write_whole
from recipes.common import options, results

RECORD = Path(__file__).with_suffix(".jsonl")
SPACE, POINTS, STEPS, EVERY, SEEDS = 16, 64, 1000, 50, (1, 2, 3)


class FGGLinear(nn.Module):
    """Linear layer whose outputs are scaled distances to hyperplanes.

    Space coordinate ``i`` is ``x V_i``, with ``V = [-|u| sinh(b); cosh(b) u]`` and
    ``b = sqrt(c) a / |u|``. It equals ``|u| sinh(sqrt(c) d) / sqrt(c)``, where ``d`` is the signed
    distance from the hyperplane at ``a / |u|`` along ``u``. The time follows from the space part.

    Shapes: points ``[..., in_space + 1]`` -> points ``[..., out_space + 1]``.
    Source: van der Klis et al., arXiv 2601.21529, without an activation.

    Args:
        in_space: space coordinates of the input.
        out_space: space coordinates of the output.
        unit: use ``u / |u|`` instead of ``u``.
        c: the hyperboloids have curvature ``-c``.
    """

    def __init__(
        self, in_space: int, out_space: int, *, unit: bool = False, c: float = 1.0
    ) -> None:
        super().__init__()
        self.unit, self.c = unit, c
        self.normals = nn.Parameter(torch.randn(out_space, in_space) / in_space**0.5)
        self.offsets = nn.Parameter(torch.zeros(out_space))

    def forward(self, x: Tensor) -> Tensor:
        lengths = self.normals.norm(dim=-1)
        normals = self.normals / lengths[:, None] if self.unit else self.normals
        lengths = torch.ones_like(lengths) if self.unit else lengths
        b = self.c**0.5 * self.offsets / lengths
        times, spaces = -lengths * b.sinh(), b.cosh()[:, None] * normals
        return lorentz.lift(x @ torch.cat([times[:, None], spaces], dim=-1).t(), c=self.c)


LAYERS: Mapping[str, Callable[[], nn.Module]] = {
    "hybonet": lambda: LorentzLinear(SPACE + 1, SPACE + 1),
    # its map returns only space coordinates, which determine the time
    "hypformer": lambda: HTC(SPACE, SPACE, gain=1.0),
    "fgg": lambda: FGGLinear(SPACE, SPACE),
    "fgg, unit normals": lambda: FGGLinear(SPACE, SPACE, unit=True),
}
OPTIMIZERS: Mapping[str, Callable[[Any], torch.optim.Optimizer]] = {
    "SGD 0.05": lambda parameters: torch.optim.SGD(parameters, lr=0.05),
    "Adam 0.01": lambda parameters: torch.optim.Adam(parameters, lr=0.01),
}
"""Optimizers by name and learning rate."""


def radii(layer: str, optimizer: str, seed: int, steps: int = STEPS) -> list[tuple[int, float]]:
    """Return pairs of step and mean radius at intervals, until a number is no longer finite."""
    torch.manual_seed(seed)
    module = LAYERS[layer]().double()
    directions = torch.randn(POINTS, SPACE, dtype=torch.float64)
    x = lorentz.lift(math.sinh(1.0) * directions / directions.norm(dim=-1, keepdim=True))
    stepper, found = OPTIMIZERS[optimizer](module.parameters()), []
    for step in range(steps + 1):
        space = module(x).reshape(POINTS, -1)[:, -SPACE:]
        radius = torch.asinh(space.norm(dim=-1)).mean()
        if not radius.isfinite():
            break
        if step % EVERY == 0:
            found.append((step, round(radius.item(), 3)))
        stepper.zero_grad()
        (-radius).backward()
        stepper.step()
    return found


def main() -> None:
    """Measure all layers with all optimizers and write the record."""
    options.script_parser(__doc__, Path(__file__)).parse_args()
    torch.set_num_threads(1)
    about = results.surroundings()
    lines = [
        {"layer": layer, "optimizer": optimizer, "seed": seed, "radii": found, **about}
        for layer in LAYERS
        for optimizer in OPTIMIZERS
        for seed in SEEDS
        if (found := radii(layer, optimizer, seed))
    ]
    write_whole(RECORD, "".join(json.dumps(line) + "\n" for line in lines))


if __name__ == "__main__":
    sys.exit(run_command(main, stopped=""))
