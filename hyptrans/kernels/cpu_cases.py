"""Small calls of the operators that have kernels for the CPU alone, for their check."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import torch
from torch import Tensor

from hyptrans.geometry import klein, lorentz, poincare
from hyptrans.kernels import hypformer, operators, weights
from hyptrans.kernels import klein as klein_kernels
from hyptrans.kernels.backend import Part
from hyptrans.kernels.ball import heads, residual, tangents
from hyptrans.kernels.functions import relu_dropout
from hyptrans.kernels.heads import cut

Function = Callable[..., Sequence[Tensor]]
Case = tuple[str, Sequence[Tensor], Function, Function]
"""A name, inputs, and what the kernel and the formula make of them."""
Call = Callable[[], Sequence[Tensor]]
Without = tuple[str, Call, Call]
"""A name, and what the kernel and the formula give, where no gradient is wanted."""

WIDTH, C, SEED = 9, 0.5, 20_240_301


def cases(part: Part, numbers: Callable[..., Tensor]) -> Iterator[Case]:
    """The cases of a part, of random numbers of a shape; none of a part that CUDA has as well."""
    if part in _CASES:
        yield from _CASES[part](numbers)


def without_gradient(part: Part, numbers: Callable[..., Tensor]) -> Iterator[Without]:
    """The cases of a part that run only where no gradient is wanted."""
    if part in _WITHOUT_GRADIENT:
        yield from _WITHOUT_GRADIENT[part](numbers)


def _one(function: Callable[..., Tensor]) -> Function:
    return lambda *inputs: (function(*inputs, c=C),)


def _tangents(numbers: Callable[..., Tensor]) -> Iterator[Case]:
    u, v = 0.3 * numbers(300, WIDTH), 0.3 * numbers(300, WIDTH)
    x = poincare.exp_origin(u, c=C)
    added = _one(tangents.add_tangents), _one(poincare.add_tangents)
    yield "sum of tangents", [u, v], *added
    yield "sum with one tangent", [u, v[0]], *added
    yield (
        "sum after ReLU",
        [u, v[0]],
        _one(partial(tangents.add_tangents, relu=True)),
        lambda u, v: (poincare.add_tangents(u, v, c=C).relu(),),
    )
    yield "exponential map", [u], _one(tangents.exp_origin), _one(poincare.exp_origin)
    yield "logarithm", [x], _one(tangents.log_origin), _one(poincare.log_origin)
    yield (
        "lifted heads",
        [0.3 * numbers(6, 10, 3, 2 * WIDTH)],
        partial(heads.lift_heads, heads=2, c=C),
        lambda u: poincare.lift_tangent(cut(u, 2), c=C).unbind(),
    )
    means = _one(heads.centroid_tangent), _one(poincare.centroid_tangent)
    yield "mean of heads", [_with_far_ones(lorentz.lift(numbers(5, 2, 30, WIDTH)))], *means
    yield from _residuals(numbers)


def _with_far_ones(total: Tensor) -> Tensor:
    """Sums of heads of which the first ones are far out: at distance 4.2, and beyond any clamp."""
    # on an axis and in powers of two: what is rounded there, the edge would magnify
    slopes = total.new_tensor([1 - 2.0**-11, 1, 1.25])
    total[0, 0, :3] = 0
    total[0, 0, :3, 0], total[0, 0, :3, 2] = 1, slopes
    return total


def _residuals(numbers: Callable[..., Tensor]) -> Iterator[Case]:
    x = poincare.exp_origin(0.3 * numbers(300, WIDTH), c=C)
    given = [x, numbers(300, WIDTH), 0.3 * numbers(WIDTH), numbers(1)[0], *numbers(2, WIDTH)]
    options = {"c": C, "epsilon": 1e-5}
    for dropout in (0.0, 0.25):

        def kernel(*given: Tensor, p: float = dropout) -> Sequence[Tensor]:
            operands = residual.ResidualOperands(*given)
            return (residual.seeded_norm_residual(operands, SEED, dropout=p, **options),)

        def formula(*given: Tensor, p: float = dropout) -> Sequence[Tensor]:
            operands = residual.ResidualOperands(*given)
            update = poincare.add_tangents(operands.z, operands.bias, c=C)
            if p:
                update = update * relu_dropout("numba", torch.ones_like(update), p, False, SEED)
            return (residual.plain_norm_of_sum(operands, update, **options),)

        yield f"residual with norm{', dropout' * (dropout > 0)}", given, kernel, formula


def _klein(numbers: Callable[..., Tensor]) -> Iterator[Case]:
    yield (
        "polar heads",
        [numbers(6, 10, 3, 2 * WIDTH)],
        partial(klein_kernels.polar_heads, heads=2, max_radius=3.0),
        lambda given: klein.polar_points(cut(given, 2), 3.0).unbind(),
    )
    yield (
        "midpoint of heads",
        [lorentz.lift(numbers(5, 2, 30, WIDTH))],
        lambda total: (klein_kernels.midpoint_of_sum(total),),
        lambda total: (klein.midpoint_of_sum(total),),
    )


def _hypformer(numbers: Callable[..., Tensor]) -> Iterator[Case]:
    x, update, c = numbers(300, WIDTH + 1), numbers(300, WIDTH), numbers(1)[0].exp()
    gain, bias, scale = numbers(WIDTH), numbers(WIDTH), numbers(1)[0]

    def normed_by(function: Callable[..., Tensor]) -> Function:
        return lambda *given: (function(*given[:-1], c=given[-1], epsilon=1e-5),)

    yield (
        "norm of points",
        [x, update, scale, gain, bias, c],
        normed_by(hypformer.norm_points),
        normed_by(hypformer.plain_norm_points),
    )
    yield (
        "lift after ReLU",
        [update, c],
        lambda space, c: (hypformer.relu_lift(space, c=c),),
        lambda space, c: (lorentz.lift(torch.relu(space), c=c),),
    )
    yield (
        "features",
        [numbers(5, 2, 30, WIDTH), numbers(2, 1, WIDTH)],
        lambda given, scale: (hypformer.focus(given, scale, 2.0),),
        lambda given, scale: (hypformer.plain_focus(given, scale, 2.0),),
    )


def _weights(numbers: Callable[..., Tensor]) -> Iterator[Case]:
    # not close to -1: gradients of a distance near 0 have few digits, whoever computes them
    products, scale = -1.5 - numbers(5, 2, 30, 30).square(), -numbers(2).exp()
    allowed = (torch.arange(150, device=products.device) % 3 != 1).view(5, 1, 1, 30)

    def made_by(function: Callable[..., Tensor], squared: bool, is_causal: bool) -> Function:
        return lambda p, s: (function(p, s, squared=squared, is_causal=is_causal, allowed=allowed),)

    for squared, is_causal in ((False, True), (True, False)):
        yield (
            f"weights of {'squared ' * squared}distances",
            [products, scale],
            made_by(weights.distance_weights, squared, is_causal),
            made_by(weights.plain_weights, squared, is_causal),
        )


def _centroids(numbers: Callable[..., Tensor]) -> Iterator[Without]:
    query, keys, values, places = _table(numbers)

    def formula() -> list[Tensor]:
        shares = torch.einsum("bhtd,bshd->bhts", query, keys[places]).softmax(-1)
        return [lorentz.centroid(values[places].transpose(1, 2), shares, c=C)]

    yield "centroids", lambda: [operators.centroids(query, keys, values, places, c=C)], formula


def _midpoints(numbers: Callable[..., Tensor]) -> Iterator[Without]:
    query, keys, values, places = _table(numbers)
    query, keys, scale = lorentz.lift(query), lorentz.lift(keys), -numbers(query.size(1)).exp()

    def formula() -> list[Tensor]:
        apart = klein.distances(query, keys[places].transpose(1, 2))
        shares = (apart * scale[:, None, None]).softmax(-1)
        return [klein.midpoint(shares, values[places].transpose(1, 2))]

    yield (
        "midpoints",
        lambda: [klein_kernels.midpoints(query, keys, values, places, scale)],
        formula,
    )


def _table(numbers: Callable[..., Tensor]) -> tuple[Tensor, ...]:
    """Queries, keys, values and the places of those that they look at."""
    rows, length, heads = 3, 7, 2
    query, keys = numbers(rows, heads, 1, WIDTH), numbers(rows * length, heads, WIDTH)
    values = lorentz.lift(numbers(rows * length, heads, WIDTH), c=C)
    return query, keys, values, torch.arange(rows * length).view(rows, length)


def _sums(numbers: Callable[..., Tensor]) -> Iterator[Without]:
    rows, heads, least = 3, 2, 1e-30
    query, key, value = numbers(3, rows, heads, 1, WIDTH).unbind()
    key_value = numbers(rows, heads, WIDTH, WIDTH)
    key_sum = 1 + numbers(rows, heads, WIDTH).square()
    scale, psi = numbers(heads, 1, WIDTH), numbers(heads, WIDTH, WIDTH)
    maps, order = hypformer.head_maps(scale, psi), torch.tensor([2, 0, 2])

    def answers(asked: Tensor, key_value: Tensor, key_sum: Tensor, own: Tensor) -> Tensor:
        features = hypformer.plain_focus(asked, scale, 2.0)
        return features @ key_value / (features @ key_sum.unsqueeze(-1)) + own @ psi

    def step() -> list[Tensor]:
        known = hypformer.plain_focus(key, scale, 2.0)
        after = key_value[order] + known.transpose(-1, -2) @ value, key_sum[order] + known[:, :, 0]
        return [answers(query, *after, value), *after]

    numbers_of_a_position = (query, key, value)
    yield (
        "step of linear attention",
        lambda: hypformer.linear_step(
            numbers_of_a_position, key_value, key_sum, order, maps, least=least
        ),
        step,
    )
    yield (
        "linear attention of sums",
        lambda: [hypformer.linear_read(query, key_value, key_sum, order, maps, least=least)],
        lambda: [answers(query, key_value[order], key_sum[order], query)],
    )


_CASES: dict[Part, Callable[[Callable[..., Tensor]], Iterator[Case]]] = {
    "tangents": _tangents,
    "klein": _klein,
    "hypformer": _hypformer,
    "weights": _weights,
}
_WITHOUT_GRADIENT: dict[Part, Callable[[Callable[..., Tensor]], Iterator[Without]]] = {
    "points": _centroids,
    "klein": _midpoints,
    "hypformer": _sums,
}
