"""Lorentz attention in half precision against the formulas in float64."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from hyptrans.geometry import lorentz
from hyptrans.geometry.precision import half_in_force
from hyptrans.kernels import few_queries
from hyptrans.layers.curvature import Curvature
from hyptrans.layers.decoding_state import State
from hyptrans.layers.hybonet import LorentzAttention
from hyptrans.layers.hypformer_attention import SoftmaxAttention
from hyptrans.layers.lorentz import half_attention
from hyptrans.layers.lorentz.mix import lorentz_mix
from tests.oracles import lorentz as oracle

TAU = 8.0
DIGITS = {torch.bfloat16: 2**-8, torch.float16: 2**-11}
"""Largest relative error of a number rounded to half precision."""

dtypes = pytest.mark.parametrize("dtype", DIGITS, ids=str)
far = pytest.mark.parametrize("time", [1.5, 3.0, 11.0, 50.0])


def spread_out(rng, *shape, time):
    """Space parts in all directions, at one time."""
    space = torch.randn(*shape, generator=rng, dtype=torch.float64)
    return space / space.norm(dim=-1, keepdim=True) * math.sqrt(time**2 - 1)


def close_together(rng, *shape, time):
    """Space parts of about 0.3 of one another, around one of this time for every head."""
    noise = torch.randn(*shape, generator=rng, dtype=torch.float64) / shape[-1] ** 0.5
    return spread_out(rng, *shape[:-2], 1, shape[-1], time=time) + 0.2 * noise


def heads(rng, place, *, time, width=16, keys=24):
    """Space parts of queries, keys and values of 2 sentences and 2 heads."""
    shape = 2, 2, keys, width - 1
    near = place(rng, *shape, time=time)
    # a query looks for keys near by, or its weights would be those of one key and zeros
    query = near + torch.randn(shape, generator=rng, dtype=torch.float64) / width**0.5
    return query, near, place(rng, *shape, time=time)


def mixed(spaces, half, *, tau=TAU, c=1.0, allowed=None, is_causal=False):
    query, key, value = (lorentz.lift(space, c=c) for space in spaces)
    query = lorentz.flip_time(query) * (2 / tau)
    return lorentz_mix(query, key, value, c=c, half=half, allowed=allowed, is_causal=is_causal)


def naive(spaces, dtype, *, tau=TAU, c=1.0):
    """What casting the coordinates of the points gives."""
    query, key, value = (lorentz.lift(space.float(), c=c) for space in spaces)
    query = lorentz.flip_time(query) * (2 / tau)
    mean = F.scaled_dot_product_attention(
        query.to(dtype), key.to(dtype), value.to(dtype), scale=1.0
    )
    return lorentz.normalize(mean, c=c)


def formula(spaces, *, c=1.0, allowed=None):
    """Of every sentence and head, by the oracle's loop over queries."""
    q, k, v = (oracle.lift(space.numpy(), c) for space in spaces)
    rows = [
        [
            oracle.attention(
                q[b, h], k[b, h], v[b, h], TAU, c, None if allowed is None else allowed[b, 0]
            )
            for h in range(q.shape[1])
        ]
        for b in range(len(q))
    ]
    return torch.from_numpy(np.array(rows))


def error(got, expected):
    """Root mean square of the errors of points, relative to them."""
    relative = (got - expected).norm(dim=-1) / expected.norm(dim=-1)
    return relative.square().mean().sqrt().item()


def floats(spaces):
    return [space.float() for space in spaces]


@dtypes
def test_parts_of_a_time_add_up_to_it(dtype, rng):
    time = torch.rand(1000, generator=rng).mul(9).exp()
    parts = half_attention.split_time(time, dtype)
    assert all(part.dtype == dtype for part in parts)
    total = sum(part.double() for part in parts)
    # 11 bits, 11 bits and a sign are one short of float32's 24; three times 8 are not
    rtol = {torch.float16: 2**-23, torch.bfloat16: 0}[dtype]
    torch.testing.assert_close(total, time.double(), rtol=rtol, atol=0)


@dtypes
@far
@pytest.mark.parametrize("width", [16, 64])
def test_values_close_together_keep_their_digits_however_far_out(dtype, time, width, rng):
    spaces = heads(rng, close_together, time=time, width=width)
    in_float32 = 2**-23 * time**2
    got = error(mixed(floats(spaces), dtype), formula(spaces))
    assert got < 0.1 * DIGITS[dtype] + in_float32


@dtypes
@pytest.mark.parametrize("time", [1.5, 3.0, 50.0])
def test_values_in_all_directions_keep_their_digits(dtype, time, rng):
    # at time 50 a query sees one value only, between these times also several
    spaces = heads(rng, spread_out, time=time)
    assert error(mixed(floats(spaces), dtype), formula(spaces)) < DIGITS[dtype]


@dtypes
@pytest.mark.parametrize(
    ("place", "factor"), [(close_together, 1000), (spread_out, 2)], ids=["close", "spread"]
)
def test_casting_coordinates_is_worse_by_far_at_time_11(place, factor, dtype, rng):
    spaces = heads(rng, place, time=11.0)
    expected = formula(spaces)
    assert error(naive(spaces, dtype), expected) > factor * error(
        mixed(floats(spaces), dtype), expected
    )


@dtypes
@pytest.mark.parametrize("c", [0.25, 4.0])
def test_other_curvatures(c, dtype, rng):
    spaces = heads(rng, close_together, time=3.0)
    assert error(mixed(floats(spaces), dtype, c=c), formula(spaces, c=c)) < 0.2 * DIGITS[dtype]


@dtypes
def test_masks(dtype, rng):
    spaces = heads(rng, close_together, time=6.0)
    allowed = torch.rand(2, 1, 24, 24, generator=rng) < 0.7
    allowed[..., 0] = True
    got = mixed(floats(spaces), dtype, allowed=allowed)
    assert error(got, formula(spaces, allowed=allowed.numpy())) < 0.2 * DIGITS[dtype]
    past = torch.ones(24, 24, dtype=torch.bool).tril().expand(2, 1, 24, 24)
    got = mixed(floats(spaces), dtype, is_causal=True)
    assert error(got, formula(spaces, allowed=past.numpy())) < 0.2 * DIGITS[dtype]


def gradients(spaces, towards, mix):
    """Of queries, keys, values, ``tau`` and ``c``, in the spaces' precision."""
    leaves = [x.clone().requires_grad_() for x in (*spaces, spaces[0].new_tensor(TAU))]
    leaves.append(spaces[0].new_tensor(1.3).requires_grad_())
    *points, tau, c = leaves
    (mix(points, tau=tau, c=c) * towards).sum().backward()
    return [x.grad.double() for x in leaves]


# spread out farther, weights are those of one value and zeros: gradients are float32's rounding too
@dtypes
@pytest.mark.parametrize(
    ("place", "time", "factor"),
    [(close_together, 3.0, 20), (close_together, 11.0, 100), (spread_out, 3.0, 0.8)],
)
def test_gradients_are_those_of_float64_and_casting_is_worse(place, time, factor, dtype, rng):
    spaces = heads(rng, place, time=time)
    towards = torch.randn(2, 2, 24, 16, generator=rng, dtype=torch.float64)
    expected = gradients(spaces, towards, lambda x, **kw: mixed(x, None, **kw))

    def errors(mix):
        got = gradients(floats(spaces), towards.float(), lambda x, **kw: mix(x, dtype, **kw))
        return [((g - e).norm() / e.norm()).item() for g, e in zip(got, expected, strict=True)]

    ours = errors(mixed)
    assert max(ours) < 5 * time * DIGITS[dtype]
    of_query, of_key, *_ = errors(naive)
    assert of_query > factor * ours[0]
    assert of_key > min(factor, 10) * ours[1]


@dtypes
def test_far_points_give_finite_points_and_gradients(dtype, rng):
    spaces = [
        (1e4 * torch.randn(1, 2, 12, 15, generator=rng) / 15**0.5).requires_grad_()
        for _ in range(3)
    ]
    for points in (spaces, [x[:, :, :1].expand(1, 2, 12, 15) for x in spaces]):
        out = mixed(points, dtype)
        assert torch.isfinite(out).all()
        assert lorentz.violation(out).max() < 2e-6
        # float16's gradients are scaled in training
        out.sum().mul(2**-20).backward()
        assert all(torch.isfinite(x.grad).all() for x in spaces)


def test_points_beyond_float16_are_not_passed_over(rng):
    near, far = torch.ones(1, 1, 14, 7), 1e6 * torch.eye(7).repeat(1, 1, 2, 1)
    for spaces in ((far, near, near), (near, far, near), (near, near, far)):
        assert torch.isfinite(mixed(spaces, torch.bfloat16)).all()
        assert mixed(spaces, torch.float16).isnan().all()


@dtypes
def test_a_time_is_never_below_that_of_a_point(dtype, rng):
    # two sorts of values, each close together and far from the other: the rounding is relative
    # to the gap, and what is left of |m|^2 within one sort has either sign
    value = close_together(rng, 1, 1, 24, 15, time=50.0)
    value[:, :, 12:] *= -1
    key = 3 * torch.sign(torch.arange(24) - 11.5)[:, None].expand(1, 1, 24, 15) / 15**0.5
    out = mixed(floats([key, key, value]), dtype, tau=0.1)
    assert (out[..., 0] < 1.1 * 50).all()


@dtypes
def test_autocast_and_half_weights_choose_it(dtype, rng):
    layer, spaces = (
        LorentzAttention(64, 4, half_precision=True),
        floats(heads(rng, close_together, time=3.0)),
    )
    query, key, value = (lorentz.lift(space) for space in spaces)
    query = lorentz.flip_time(query) * (2 / TAU)

    def mix(layer):
        return layer.mix(query, key, value, allowed=None, is_causal=False)

    expected = mixed(spaces, dtype)
    exact = mix(layer)
    torch.testing.assert_close(exact, mixed(spaces, None), rtol=0, atol=0)
    assert not torch.equal(exact, expected)
    with torch.autocast("cpu", dtype=dtype):
        torch.testing.assert_close(mix(layer), expected, rtol=0, atol=0)
    torch.testing.assert_close(mix(layer.to(dtype)), expected, rtol=0, atol=0)
    block = SoftmaxAttention(
        16, 1, curvature=Curvature(), input_curvature=Curvature(), gain=1.0, half_precision=True
    )
    with torch.autocast("cpu", dtype=dtype):
        torch.testing.assert_close(mix(block), expected)


def test_float32_is_what_it_was(rng):
    spaces = floats(heads(rng, close_together, time=3.0))
    query, key, value = (lorentz.lift(space) for space in spaces)
    query = lorentz.flip_time(query) * (2 / TAU)
    mean = F.scaled_dot_product_attention(query, key, value, scale=1.0)
    layer = LorentzAttention(64, 4, half_precision=True)
    got = layer.mix(query, key, value, allowed=None, is_causal=False)
    torch.testing.assert_close(got, lorentz.normalize(mean), rtol=1e-6, atol=1e-5)


def test_half_in_force():
    weight, x = torch.ones(()), torch.ones(2)
    assert half_in_force(x, weight) is None
    assert half_in_force(x, weight.half()) == torch.float16
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert half_in_force(x, weight) == torch.bfloat16
        assert half_in_force(x.double(), weight.double()) is None
        with torch.autocast("cpu", enabled=False):
            assert half_in_force(x, weight) is None


def test_a_few_queries_stay_in_float32(rng):
    spaces = floats(heads(rng, close_together, time=3.0))
    spaces[0] = spaces[0][:, :, : few_queries.FEW_QUERIES]
    torch.testing.assert_close(mixed(spaces, torch.bfloat16), mixed(spaces, None), rtol=0, atol=0)


@dtypes
def test_a_whole_layer_with_padding_beams_and_state(dtype, rng):
    layer = LorentzAttention(64, 4, memory_width=64, half_precision=True)
    layer.tau.data.fill_(2.0)
    x = lorentz.lift(torch.randn(6, 9, 63, generator=rng))
    memory = lorentz.lift(torch.randn(2, 9, 63, generator=rng))
    padding = torch.zeros(2, 9, dtype=torch.bool)
    padding[1, 5:] = True
    expected = layer(x, memory, padding=padding)
    assert expected.shape == (6, 9, 64)
    with torch.autocast("cpu", dtype=dtype):
        got = layer(x, memory, padding=padding)
        state = State()
        steps = [layer(x[:, i : i + 1], memory, padding=padding, state=state) for i in range(9)]
    assert error(got, expected) < 10 * DIGITS[dtype]
    assert error(torch.cat(steps, dim=1), expected) < 10 * DIGITS[dtype]
