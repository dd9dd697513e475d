"""Small calls of every operator with a kernel, which kernels and formulas must answer alike."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch

from hyptrans.geometry import poincare
from hyptrans.kernels import backend
from hyptrans.kernels.linear_attention import channel_factors, step
from hyptrans.kernels.lorentz import from_linear, normalize
from hyptrans.kernels.poincare import add_tangents
from hyptrans.kernels.poincare_residual import norm_residual

TOLERANCE = {torch.float64: 1e-12, torch.float32: 2e-5}


class Draw:
    """Random numbers in the sizes of a case.

    Args:
        dtype: of the drawn tensors.
        shape: leading dimensions.
        width: numbers of a row.
        c: for curvature ``-c``.
    """

    def __init__(self, dtype=torch.float64, *, shape=(6, 50), width=9, c=0.5, device=None):
        self.rng = torch.Generator("cpu").manual_seed(0)
        self.dtype, self.device = dtype, device or torch.get_default_device()
        self.shape, self.width, self.c = shape, width, c

    def __call__(self, *shape):
        drawn = torch.randn(shape, generator=self.rng, dtype=torch.float64, device="cpu")
        return drawn.to(self.device, self.dtype)

    def rows(self, *shape):
        return self(*self.shape, *(shape or (self.width,)))


class Case(NamedTuple):
    """A call: the operator with its options, and its operands."""

    function: Callable[..., Any]
    operands: list[torch.Tensor]
    gradients: bool = True


def linear(draw, projections=1, heads=1, residual=None):
    z, scale = draw.rows(projections, heads, draw.width), draw(projections)
    if residual is None:
        return Case(partial(from_linear, c=draw.c), [z, scale])

    def with_residual(z, scale, r):
        return from_linear(z, scale, c=draw.c, residual=r, residual_time=residual == "full")

    return Case(with_residual, [z, scale, draw.rows()])


def time_like(draw):
    # nearer to the light cone float32 has too few digits of <v, v> left to compare gradients by
    space = draw.rows(max(1, draw.width - 1))
    v = torch.cat([space.norm(dim=-1, keepdim=True) + 0.5, space], dim=-1)
    return Case(lambda v, c: normalize(v, c=c), [v, v.new_tensor(draw.c)])


def tangents(draw, one=False, relu=False):
    u, v = 0.3 * draw.rows(), 0.3 * (draw(draw.width) if one else draw.rows())
    return Case(partial(add_tangents, c=draw.c, relu=relu), [u, v])


def residual(draw):
    size = draw.width**-0.5
    x = poincare.exp_origin(size * draw.rows(), c=draw.c)
    bias, beta = size * draw(draw.width), x.new_tensor(0.7)
    operands = [x, 3 * size * draw.rows(), bias, beta, draw(draw.width), draw(draw.width)]
    return Case(partial(norm_residual, c=draw.c, epsilon=1e-5, dropout=0.0), operands)


def linear_step(draw):
    rows, heads, d = 3, 2, draw.width
    sums = [draw(rows, heads, d, d), 1 + draw(rows, heads, d).square()]
    own = [channel_factors(draw(heads, 1, d)), draw(heads, d, d)]
    given = [draw(rows, 1, heads, d).transpose(1, 2) for _ in range(3)]
    operands = [*given, *sums, *own]
    return Case(lambda *operands: step(*operands, power=2.0), operands, gradients=False)


CASES = {
    "points": linear,
    "points of three projections": partial(linear, projections=3, heads=2),
    "points with residual": partial(linear, residual="full"),
    "points with space residual": partial(linear, residual="space"),
    "normalize": time_like,
    "sum of tangents": tangents,
    "sum with one tangent": partial(tangents, one=True),
    "sum after ReLU": partial(tangents, one=True, relu=True),
    "residual with norm": residual,
    "step of linear attention": linear_step,
}
ON_TRITON = [name for name in CASES if name.startswith(("points", "normalize"))]
WITH_GRADIENTS = [name for name in CASES if name != "step of linear attention"]


def results_of(case, kernels, monkeypatch):
    """Results by a backend, and the gradients of a sum of them; copies of the operands are used."""
    monkeypatch.setattr(backend, "CHOSEN", kernels)
    given = [x.detach().clone().requires_grad_(case.gradients) for x in case.operands]
    with torch.set_grad_enabled(case.gradients):
        made = case.function(*given)
    made = [made] if isinstance(made, torch.Tensor) else list(made)
    if not case.gradients:
        return made
    weights = [torch.arange(y.numel(), device=y.device).cos().to(y.dtype).view_as(y) for y in made]
    return [*(y.detach() for y in made), *torch.autograd.grad(made, given, weights)]


def by_a_kernel(made):
    """Return whether a function with a custom backward contributed to a tensor."""
    waiting = [made.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and type(node).__name__.startswith("_"):
            return True
        waiting += [before for before, _ in node.next_functions] if node is not None else []
    return False


def assert_agree(ours, expected, tolerance):
    for got, wanted in zip(ours, expected, strict=True):
        assert (got.shape, got.dtype, got.device) == (wanted.shape, wanted.dtype, wanted.device)
        scale = wanted.abs().max().clamp_min(1).item() if wanted.numel() else 1
        torch.testing.assert_close(got, wanted, rtol=0, atol=tolerance * scale)


def numbers(rng, *shape, dtype=torch.float64):
    drawn = torch.randn(shape, generator=rng, dtype=torch.float64, device=rng.device)
    return drawn.to(torch.get_default_device(), dtype)
