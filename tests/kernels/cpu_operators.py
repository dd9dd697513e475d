"""Operators with kernels for the CPU alone, as the contract's tests call them.

Each makes inputs with the leading dimensions ``shape``, and a call of them.
"""

import math

import torch

from hyptrans.geometry import poincare
from hyptrans.kernels import hypformer, klein, weights
from hyptrans.kernels.ball import heads, residual, tangents


def numbers(rng, *shape, dtype=torch.float64):
    return torch.randn(shape, generator=rng, dtype=torch.float64).to(dtype)


def sum_of(rng, shape, dtype, *, c=0.5, one=False, relu=False):
    u = numbers(rng, *shape, 6, dtype=dtype)
    v = numbers(rng, *([] if one else shape), 6, dtype=dtype)
    inputs = [(0.3 * x).requires_grad_() for x in (u, v)]
    return inputs, lambda: (tangents.add_tangents(*inputs, c=c, relu=relu),)


def radial_of(rng, shape, dtype, *, c=0.5, inverse=False):
    # within half of the ball, where nothing is clamped
    x = numbers(rng, *shape, 6, dtype=dtype).tanh() * (0.2 * c**-0.5)
    x.requires_grad_()
    function = tangents.log_origin if inverse else tangents.exp_origin
    return [x], lambda: (function(x, c=c),)


def batch_of(shape):
    """Sentences and positions."""
    return shape[0], math.prod(shape[1:])


def lifted_heads_of(rng, shape, dtype, *, c=0.5):
    u = (0.5 * numbers(rng, *shape, 3, 6, dtype=dtype)).requires_grad_()
    return [u], lambda: heads.lift_heads(u.reshape(*batch_of(shape), 3, 6), 2, c=c)


def residual_of(rng, shape, dtype, *, c=0.5):
    x = poincare.exp_origin(0.4 * numbers(rng, *shape, 6), c=c).to(dtype)
    z, bias = numbers(rng, *shape, 6, dtype=dtype), 0.3 * numbers(rng, 6, dtype=dtype)
    beta = torch.tensor(0.7, dtype=dtype)
    gain, shift = numbers(rng, 2, 6, dtype=dtype)
    inputs = [t.requires_grad_() for t in (z, x, bias, beta, gain, shift)]

    def call():
        operands = residual.ResidualOperands(x, z, bias, beta, gain, shift)
        return (residual.norm_residual(operands, c=c, epsilon=1e-5, dropout=0.0),)

    return inputs, call


def mean_of_heads(rng, shape, dtype, *, c=0.5):
    total = numbers(rng, *shape, 2, 5)
    total[..., 0] = 1.1 * total[..., 1:].norm(dim=-1) + 0.1
    total = total.to(dtype).requires_grad_()

    def call():
        sums = total.reshape(*batch_of(shape), 2, 5).transpose(1, 2)
        return (heads.centroid_tangent(sums, c=c).transpose(1, 2),)

    return [total], call


def polar_heads_of(rng, shape, dtype, *, c=0.5):
    given = numbers(rng, *shape, 3, 6, dtype=dtype).requires_grad_()
    return [given], lambda: klein.polar_heads(given.reshape(*batch_of(shape), 3, 6), 2, 3 * c)


def midpoint_of_heads(rng, shape, dtype, *, c=0.5):
    (total,), _ = mean_of_heads(rng, shape, dtype)

    def call():
        heads = total.reshape(*batch_of(shape), 2, 5).transpose(1, 2)
        return (klein.midpoint_of_sum(heads).transpose(1, 2) * c,)

    return [total], call


def norm_of(rng, shape, dtype, *, c=0.5):
    x, update = numbers(rng, *shape, 6, dtype=dtype), numbers(rng, *shape, 5, dtype=dtype)
    gain, bias = numbers(rng, 5, dtype=dtype), numbers(rng, 5, dtype=dtype)
    scale, c = torch.tensor(0.7, dtype=dtype), torch.tensor(c, dtype=dtype)
    inputs = [t.requires_grad_() for t in (update, x, scale, gain, bias, c)]
    return inputs, lambda: (hypformer.norm_points(x, update, scale, gain, bias, c=c, epsilon=1e-5),)


def relu_lift_of(rng, shape, dtype, *, c=0.5):
    space = numbers(rng, *shape, 5, dtype=dtype).requires_grad_()
    c = torch.tensor(c, dtype=dtype, requires_grad=True)
    return [space, c], lambda: (hypformer.relu_lift(space, c=c),)


def focus_of(rng, shape, dtype, *, c=0.5):
    given = numbers(rng, *shape, 2, 5, dtype=dtype).requires_grad_()
    scale = numbers(rng, 2, 1, 5, dtype=dtype).requires_grad_()

    def call():
        heads = given.reshape(*batch_of(shape), 2, 5).transpose(1, 2)
        return (hypformer.focus(heads, scale, 2.0).transpose(1, 2) * c,)

    return [given, scale], call


def weights_of(rng, shape, dtype, *, c=0.5, **options):
    batch, length = batch_of(shape)
    length = max(2, min(length, 40))
    products = -1 - c * numbers(rng, batch, 2, length, length).square()
    if 0 in shape:
        products = products[:0]
    products = products.to(dtype).requires_grad_()
    scale = -numbers(rng, 2, dtype=dtype).exp()
    scale.requires_grad_()
    if options.pop("masked", False):
        options["allowed"] = torch.rand(len(products), 1, 1, length, generator=rng) < 0.7
        options["allowed"][..., :2] = True
    return [products, scale], lambda: (weights.distance_weights(products, scale, **options),)


OPERATORS = {
    "sum of tangents": sum_of,
    "sum with one tangent": lambda *a, **k: sum_of(*a, one=True, **k),
    "sum after ReLU": lambda *a, **k: sum_of(*a, one=True, relu=True, **k),
    "exponential map": radial_of,
    "logarithm": lambda *a, **k: radial_of(*a, inverse=True, **k),
    "lifted heads": lifted_heads_of,
    "residual with norm": residual_of,
    "mean of heads": mean_of_heads,
    "polar heads": polar_heads_of,
    "midpoint of heads": midpoint_of_heads,
    "norm of points": norm_of,
    "lift after ReLU": relu_lift_of,
    "features": focus_of,
    "weights": lambda *a, **k: weights_of(*a, squared=False, masked=True, **k),
    "weights of squares": lambda *a, **k: weights_of(*a, squared=True, **k),
    "causal weights": lambda *a, **k: weights_of(*a, squared=True, is_causal=True, **k),
    "causal weights, masked": lambda *a, **k: weights_of(
        *a, squared=False, is_causal=True, masked=True, **k
    ),
}
NOTHING_TO_COMPARE = {
    *((name, size) for name in ("lifted heads", "residual with norm") for size in (1e2, 1e4)),
    *(
        (name, size)
        for name in ("weights of squares", "causal weights", "norm of points")
        for size in (1e-12, 1e-4)
    ),
}
"""Times of large tangents are infinite; at the clamp beta's gradient is a thousandth of its terms,
and in float32 the plain formulas miss it by as much; where all weights are equal, or a layer norm
takes away the one scale that there is, gradients are rounding alone."""
