"""Linear attention: one formula in several forms, against a loop in NumPy."""

import numpy as np
import pytest
import torch

from hyptrans.kernels.linear_attention import (
    causal,
    channel_factors,
    features,
    from_sums,
    quadratic,
    summarize,
)
from tests.geometry.helpers import EXACT
from tests.oracles import hypformer as oracle

# sums of a thousand terms in different orders
SUMMED = {"rtol": 1e-10, "atol": 1e-10}


def focus(numbers, scale, power):
    return features(numbers, channel_factors(scale), power)


def inputs(rng, length, *, batch=2, heads=3, d=4, e=5, dtype=torch.float64):
    """Features of queries and keys, and values; no row of features is near zero."""
    numbers = torch.randn(2, batch, heads, length, d, generator=rng, dtype=torch.float64)
    numbers[..., 0] = numbers[..., 0].abs() + 0.5
    value = torch.randn(batch, heads, length, e, generator=rng, dtype=torch.float64)
    scale = torch.randn(heads, 1, d, generator=rng, dtype=torch.float64)
    query, key = focus(numbers, scale, 2.0)
    return tuple(t.to(dtype).requires_grad_() for t in (query.clone(), key.clone(), value))


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0, 4.0])
def test_features_match_the_printed_formula(power, rng):
    numbers = torch.randn(3, 50, 8, generator=rng, dtype=torch.float64)
    scale = torch.randn(3, 1, 8, generator=rng, dtype=torch.float64)
    got = focus(numbers, scale, power).numpy()
    for h in range(3):
        for i in range(50):
            expected = oracle.focus(numbers[h, i].numpy(), scale[h, 0].numpy(), power)
            np.testing.assert_allclose(got[h, i], expected, **EXACT)


@pytest.mark.parametrize("power", [2.0, 4.0, 8.0])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
@pytest.mark.parametrize("size", [0.0, 1e-4, 1.0, 1e3])
def test_features_of_any_row_are_finite_and_not_zero(size, dtype, power, rng):
    numbers = (torch.randn(64, 16, generator=rng) * size).to(dtype)
    numbers[0] = -numbers[0].abs() - 1  # no positive number
    numbers[1, 1:] = -1  # a single one
    numbers.requires_grad_()
    scale = torch.zeros(16, dtype=dtype, requires_grad=True)
    found = focus(numbers, scale, power)
    found.sum().backward()
    assert found.dtype == torch.float32
    assert torch.isfinite(found).all()
    assert found.norm(dim=-1).min() > 0
    assert torch.isfinite(numbers.grad).all()
    assert torch.isfinite(scale.grad).all()


@pytest.mark.parametrize("is_causal", [False, True])
def test_quadratic_form_matches_the_loop(is_causal, rng):
    query, key, value = inputs(rng, 7)
    got = quadratic(query, key, value, causal=is_causal).detach().numpy()
    query, key, value = (t.detach().numpy() for t in (query, key, value))
    for b in range(2):
        for h in range(3):
            expected = oracle.linear_attention(
                query[b, h], key[b, h], value[b, h], lambda i, j: j <= i or not is_causal
            )
            np.testing.assert_allclose(got[b, h], expected, **EXACT)


def outputs_and_gradients(function, tensors, rng):
    out = function(*tensors)
    weights = torch.randn(out.shape, generator=rng.manual_seed(3), dtype=out.dtype)
    return [out, *torch.autograd.grad((out * weights).sum(), tensors)]


@pytest.mark.parametrize("chunk", [1, 3, 16, 64, 1000])
@pytest.mark.parametrize("length", [1, 2, 63, 64, 65, 200])
def test_chunks_of_any_size_give_the_quadratic_form_and_its_gradients(length, chunk, rng):
    tensors = inputs(rng, length)
    expected = outputs_and_gradients(lambda *t: quadratic(*t, causal=True), tensors, rng)
    got = outputs_and_gradients(lambda *t: causal(*t, chunk=chunk)[0], tensors, rng)
    for one, other in zip(got, expected, strict=True):
        torch.testing.assert_close(one, other, **SUMMED)


def test_sums_give_the_noncausal_quadratic_form_and_its_gradients(rng):
    tensors = inputs(rng, 90)
    expected = outputs_and_gradients(quadratic, tensors, rng)
    got = outputs_and_gradients(lambda q, k, v: from_sums(q, summarize(k, v)), tensors, rng)
    for one, other in zip(got, expected, strict=True):
        torch.testing.assert_close(one, other, **SUMMED)


def test_keys_without_features_are_ignored_and_alone_give_zero(rng):
    query, key, value = (t.detach() for t in inputs(rng, 9, dtype=torch.float32))
    key[:, :, :4] = 0
    for tensor in (query, key, value):
        tensor.requires_grad_()
    out, _ = causal(query, key, value, chunk=2)
    assert out[:, :, :4].abs().max() == 0
    torch.testing.assert_close(
        out[:, :, 4:], causal(query[:, :, 4:], key[:, :, 4:], value[:, :, 4:])[0]
    )
    out.sum().backward()
    for tensor in (query, key, value):
        assert torch.isfinite(tensor.grad).all()
        assert tensor.grad.abs().max() < 1e3


@pytest.mark.parametrize("form", ["chunked", "sums"])
def test_gradients_agree_with_finite_differences(form, rng):
    query, key, value = inputs(rng, 5, batch=1, heads=1, d=3, e=2)
    functions = {
        "chunked": lambda q, k, v: causal(q, k, v, chunk=2)[0],
        "sums": lambda q, k, v: from_sums(q, summarize(k, v)),
    }
    assert torch.autograd.gradcheck(functions[form], (query, key, value))
