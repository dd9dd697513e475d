"""The Triton kernels against the eager operators: on a CUDA device, or in Triton's interpreter.

The interpreter must be asked for before triton is imported: ``test_triton.py`` runs this file in a
process of its own with ``TRITON_INTERPRET=1``, on CPU tensors.
"""

import os

import pytest
import torch

from hyptrans.geometry import lorentz
from hyptrans.kernels import functions, operators
from hyptrans.kernels.backend import chosen
from tests.geometry.test_lorentz import CURVATURES
from tests.kernels.test_operators import OPERATORS, SHAPES, both, numbers, with_gradients

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cpu" if INTERPRETED else "cuda"
# float32: what two orders of summation differ by in a sum close to light-like
TOLERANCE = {torch.float64: 1e-12, torch.float32: 5e-5}

pytestmark = pytest.mark.gpu
device_only = pytest.mark.skipif(INTERPRETED, reason="needs a CUDA device")


@pytest.fixture(autouse=True)
def _on_device(monkeypatch):
    if DEVICE == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device, or TRITON_INTERPRET=1")
    monkeypatch.setenv("HYPTRANS_KERNELS", "triton")
    with torch.device(DEVICE):
        yield


@pytest.fixture
def rng():
    return torch.Generator(DEVICE).manual_seed(0)


def assert_agree(kernel, eager, tolerance):
    for ours, expected in zip(kernel, eager, strict=True):
        assert ours.shape == expected.shape
        assert ours.dtype == expected.dtype
        assert ours.device == expected.device
        scale = expected.abs().max().clamp_min(1).item() if expected.numel() else 1
        torch.testing.assert_close(ours, expected, rtol=0, atol=tolerance * scale)


def test_triton_is_chosen():
    for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
        assert chosen(torch.ones(2, dtype=dtype)) == "triton"
    assert chosen(torch.ones(2, dtype=torch.int64)) == "eager"
    assert chosen(torch.ones(0)) == "eager"


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("shape", [*SHAPES, (5000,)], ids=str)
@pytest.mark.parametrize("name", OPERATORS)
def test_kernels_agree_with_the_eager_operator(name, shape, dtype, rng, monkeypatch):
    kernel, eager = both(monkeypatch, *OPERATORS[name](rng, shape, dtype), "triton")
    assert_agree(kernel, eager, TOLERANCE[dtype])


def calls_of(rng, rows, width, dtype):
    """Every kind of call, on rows of any width, with curvatures that are plain numbers."""

    def random(*shape):
        return numbers(rng, *shape, dtype=dtype).requires_grad_()

    z, log_scale, factor = random(rows, 3, 2, width), random(3), random()
    one, one_scale, residual = random(rows, 1, 1, width), random(1), random(rows, width)
    space = random(rows, width)
    sums = numbers(rng, rows, width, dtype=dtype)
    sums[:, 0] = 1.2 * sums[:, 1:].norm(dim=-1)
    sums.requires_grad_()
    return {
        "queries": (
            [z, log_scale, factor],
            lambda: operators.points(z, log_scale, c=0.7, query_factor=factor),
        ),
        "residual": (
            [one, one_scale, residual],
            lambda: operators.points(one, one_scale, c=0.7, residual=residual),
        ),
        "normalize": ([sums], lambda: (operators.normalize(sums, c=0.7),)),
        "lift": ([space], lambda: (operators.lift(space, c=0.7),)),
    }


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("width", [2, 16, 33, 500, 2500])
@pytest.mark.parametrize("name", ["queries", "residual", "normalize", "lift"])
def test_rows_of_any_width(name, width, dtype, rng, monkeypatch):
    kernel, eager = both(monkeypatch, *calls_of(rng, 9, width, dtype)[name], "triton")
    assert_agree(kernel, eager, TOLERANCE[dtype] * 3)


@pytest.mark.parametrize("c", CURVATURES)
@pytest.mark.parametrize("name", OPERATORS)
def test_gradients_agree_with_finite_differences(name, c, rng):
    inputs, call = OPERATORS[name](rng, (2, 3), torch.float64, c=c)
    assert torch.autograd.gradcheck(lambda *_: call(), inputs, fast_mode=True)


@pytest.mark.parametrize("size", [1e-12, 1e-4, 1e2, 1e4])
@pytest.mark.parametrize("name", OPERATORS)
def test_extreme_sizes(name, size, rng, monkeypatch):
    inputs, call = OPERATORS[name](rng, (40,), torch.float32)
    with torch.no_grad():
        inputs[0] *= size
    kernel, eager = both(monkeypatch, inputs, call, "triton")
    for ours, expected in zip(kernel, eager, strict=True):
        assert torch.isfinite(ours).all()
        scale = expected.abs().max().clamp_min(1e-30).item()
        torch.testing.assert_close(ours, expected, rtol=0, atol=3e-4 * scale)


@pytest.mark.parametrize("radius", [1.0, 5.0, 9.9])
def test_results_lie_on_the_hyperboloid(radius, rng):
    space = numbers(rng, 400, 15, dtype=torch.float32)
    space *= torch.sinh(torch.tensor(radius)) / space.norm(dim=-1, keepdim=True)
    lifted = operators.lift(space)
    assert lorentz.violation(lifted).max() < 2e-6
    assert lorentz.violation(operators.normalize(lifted * 3)).max() < 2e-6
    z = torch.cat([numbers(rng, 400, 1, dtype=torch.float32), space], dim=-1)
    (made,) = operators.points(z[:, None, None], torch.tensor([radius]), c=1.0)
    assert lorentz.violation(made).max() < 2e-6


def test_a_space_like_sum_is_scaled_as_by_the_eager_operator(rng, monkeypatch):
    v = numbers(rng, 50, 6, dtype=torch.float32)
    v[:, 0] = v[:, 1:].norm(dim=-1) * 0.999
    v.requires_grad_()
    kernel, eager = both(monkeypatch, [v], lambda: (operators.normalize(v),), "triton")
    assert torch.isfinite(kernel[0]).all()
    for ours, expected in zip(kernel, eager, strict=True):
        size = expected.abs().max().item()
        torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-4 * size)


@pytest.mark.parametrize("column", [0, 3])
@pytest.mark.parametrize("name", OPERATORS)
def test_nan_is_not_hidden(name, column, rng):
    inputs, call = OPERATORS[name](rng, (4,), torch.float32)
    with torch.no_grad():
        inputs[0].view(4, -1)[2, column] = torch.nan
    out = torch.cat([o.reshape(4, -1) for o in call()], dim=-1)
    assert out[2].isnan().any()
    assert torch.isfinite(out[[0, 1, 3]]).all()


@pytest.mark.parametrize("name", OPERATORS)
def test_inputs_and_gradients_may_lie_anyhow_in_memory(name, rng):
    inputs, call = OPERATORS[name](rng, (6, 4), torch.float64)
    straight = with_gradients(inputs, call)
    wide = torch.zeros(*inputs[0].shape, 2, dtype=torch.float64)
    wide[..., 1] = inputs[0].detach()
    with torch.no_grad():
        inputs[0].set_(wide[..., 1])
    assert not inputs[0].is_contiguous()
    for ours, expected in zip(with_gradients(inputs, call), straight, strict=True):
        torch.testing.assert_close(ours, expected, rtol=0, atol=0)
    for out in call():
        grad = torch.zeros_like(out).transpose(0, 1).contiguous().transpose(0, 1)
        torch.autograd.grad(out, inputs[0], grad + 1, retain_graph=True)


@pytest.mark.parametrize("name", OPERATORS)
def test_a_second_run_does_not_differ_in_a_bit(name, rng):
    inputs, call = OPERATORS[name](rng, (3000,), torch.float32)
    first, second = with_gradients(inputs, call), with_gradients(inputs, call)
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


# dropout


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("p", [0.1, 0.5, 0.97])
def test_dropout_keeps_the_right_share_and_scales_it(p, relu, rng):
    x = numbers(rng, 300, 200).requires_grad_()
    torch.manual_seed(5)
    y = operators.relu_dropout(x, p, relu=relu)
    (grad,) = torch.autograd.grad(y.sum(), x)
    base = x.relu() if relu else x
    kept = y != 0
    share = kept.sum() / (base != 0).sum()
    assert abs(share - (1 - p)) < 5 * (p * (1 - p) / (base != 0).sum()) ** 0.5
    torch.testing.assert_close(y, torch.where(kept, base / (1 - p), 0))
    torch.testing.assert_close(grad, kept / (1 - p), check_dtype=False)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_dropout_in_half_precision(dtype, rng):
    x = numbers(rng, 40, 300).to(dtype).requires_grad_()
    y = operators.relu_dropout(x, 0.1)
    (grad,) = torch.autograd.grad(y.sum(), x)
    assert y.dtype == grad.dtype == dtype
    kept = y != 0
    assert 0.85 < kept.double().mean() < 0.95
    torch.testing.assert_close(y, torch.where(kept, (x.float() / 0.9).to(dtype), 0))
    torch.testing.assert_close(grad, torch.where(kept, 1 / 0.9, 0).to(dtype))


@pytest.mark.parametrize("seed", [0, 1, 2**31, 2**32 - 1, 2**63 - 2, 0x1234_5678_9ABC_DEF0])
@pytest.mark.parametrize("shape", [(1,), (3, 7), (2, 50, 33), (5, 2500)], ids=str)
@pytest.mark.parametrize("relu", [False, True])
def test_dropout_keeps_what_that_of_the_cpu_keeps(relu, shape, seed, rng):
    x = numbers(rng, *shape, dtype=torch.float32)
    results = []
    for backend, device in (("triton", DEVICE), ("numba", "cpu")):
        with torch.device(device):
            given = x.to(device).detach().requires_grad_()
            y = functions.relu_dropout(backend, given, 0.3, relu, seed)
            results.append([y.cpu(), torch.autograd.grad(y.sum(), given)[0].cpu()])
    assert_agree(*results, 1e-6)
    assert torch.equal(results[0][0] == 0, results[1][0] == 0)


def test_dropout_follows_the_seed_of_torch():
    x = torch.ones(64, 64)
    torch.manual_seed(3)
    first = operators.relu_dropout(x, 0.3)
    other = operators.relu_dropout(x, 0.3)
    torch.manual_seed(3)
    assert torch.equal(operators.relu_dropout(x, 0.3), first)
    assert not torch.equal(other, first)


# what only a device can show


@device_only
@pytest.mark.parametrize("name", [*OPERATORS, "dropout"])
def test_the_host_never_waits_for_the_device(name, rng):
    inputs, call = OPERATORS[name if name != "dropout" else "lift"](rng, (50,), torch.float32)
    if name == "dropout":
        inputs, call = inputs[:1], lambda: (operators.relu_dropout(inputs[0], 0.1),)

    def run():
        total = sum(out.sum() for out in call())
        torch.autograd.grad(total, inputs)

    # the seed of a dropout is drawn on the default device, which is the CPU outside these tests
    with torch.device("cpu"):
        run()
        before = torch.cuda.get_sync_debug_mode()
        try:
            torch.cuda.set_sync_debug_mode("error")
            run()
        finally:
            torch.cuda.set_sync_debug_mode(before)


@device_only
def test_places_beyond_32_bits():
    if torch.cuda.mem_get_info()[0] < 20 * 2**30:
        pytest.skip("needs 20 GiB of free GPU memory")
    x = torch.ones(2**21 + 3, 1024, dtype=torch.bfloat16)
    y = operators.relu_dropout(x, 0.5)
    assert y[-3:].unique().tolist() == [0, 2]
    del x, y
    space = torch.ones(2**20 + 3, 2047)
    torch.testing.assert_close(operators.lift(space)[-1], lorentz.lift(space[-1]))


@device_only
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA devices")
@pytest.mark.parametrize("name", OPERATORS)
def test_kernels_run_where_their_tensors_lie(name, monkeypatch):
    with torch.device("cuda:1"):
        inputs, call = OPERATORS[name](torch.Generator("cuda:1"), (5,), torch.float32)
        kernel, eager = both(monkeypatch, inputs, call, "triton")
    assert_agree(kernel, eager, TOLERANCE[torch.float32])
