"""The numba kernels against the eager operators, their threads, and the choice of a backend."""

import math
import os
import re
import subprocess
import sys
import threading

import numba
import numpy as np
import pytest
import torch

from hyptrans.geometry import lorentz, poincare
from hyptrans.kernels import cpu, dropout, hyperboloid, hypformer, operator, points, weights
from hyptrans.kernels.ball import heads
from hyptrans.kernels.ball import residual as ball_residual
from hyptrans.kernels.check import results_of
from hyptrans.kernels.cpu import exponential, jobs, threads
from hyptrans.kernels.cpu.threads import NUMBERS_PER_THREAD
from tests.kernels.contract import (
    TOLERANCE,
    KernelContract,
    assert_agree,
    both,
    drawn,
    numbers,
    operands_of,
)


class TestNumba(KernelContract):
    kernels = "numba"


def test_half_precision_gives_float32_points(rng):
    z = numbers(rng, 5, 1, 1, 8, dtype=torch.bfloat16).requires_grad_()
    (out,) = points.points(z, torch.ones(1, dtype=torch.bfloat16), c=1.0)
    assert out.dtype == torch.float32
    (grad,) = torch.autograd.grad(out.sum(), z)
    assert grad.dtype == torch.bfloat16


@pytest.mark.parametrize("c", [0.5, 2.0])
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("distance", [3.5, 4.0, 5.0, 6.0, 8.0, math.inf])
def test_midpoints_of_heads_far_from_the_origin(distance, dtype, c, rng, monkeypatch):
    # an infinite distance has a sum as long as its time: beyond the clamp of either dtype
    space = numbers(rng, 2, 3, 40, 6)
    space /= space.norm(dim=-1, keepdim=True)
    total = torch.cat([torch.ones(2, 3, 40, 1), math.tanh(distance) * space], dim=-1)
    total = (total * numbers(rng, 2, 3, 40, 1).exp()).to(dtype).requires_grad_()
    kernel, eager = both(
        monkeypatch, [total], lambda: (heads.centroid_tangent(total, c=c),), "numba"
    )
    edge = 2 * math.atanh(poincare.max_norm(dtype))
    # a unit of rounding of the slope moves a distance by cosh^2, but for sums on the clamp
    steep = math.cosh(distance) ** 2 if distance < edge else 16
    assert_agree(kernel, eager, 8 * torch.finfo(dtype).eps * steep)
    lengths = 2 * c**0.5 * kernel[0].norm(dim=-1) / min(distance, edge)
    assert (lengths - 1).abs().max() < 0.05


# dropout


def test_dropout_is_independent_between_rows_columns_and_calls():
    x = torch.ones(512, 512)
    torch.manual_seed(1)
    first, second = ((dropout.relu_dropout(x, 0.5) > 0).double() - 0.5 for _ in range(2))
    # correlations of 512 x 511 pairs: standard deviation 0.002
    for a, b in (
        (first[1:], first[:-1]),
        (first[:, 1:], first[:, :-1]),
        (first[1:, 1:], first[:-1, :-1]),
        (first, second),
        (first[:256], first[256:]),
    ):
        assert abs((a * b).mean() * 4) < 0.01
    # no column or row is kept more often than chance allows (standard deviation 0.022)
    assert (first.mean(0).abs() < 0.12).all()
    assert (first.mean(1).abs() < 0.12).all()


def test_a_cuda_graph_draws_new_numbers_at_each_replay(monkeypatch):
    # as of a tensor on CUDA: a seed of the host would be the graph's for good, torch's own is not
    monkeypatch.setattr(operator.Operator, "backend", lambda *_: "triton")
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    x = torch.ones(8, 8)
    torch.manual_seed(1)
    dropped = dropout.relu_dropout(x, 0.5, relu=True)
    torch.manual_seed(1)
    assert torch.equal(dropped, torch.nn.functional.dropout(x, 0.5))


def test_all_bits_of_a_seed_count():
    x = torch.ones(64, 64)
    masks = [
        dropout.RELU_DROPOUT.run("numba", x, 0.5, False, 1 + (1 << bit)) for bit in (0, 31, 32, 62)
    ]
    for i, mask in enumerate(masks):
        assert not any(torch.equal(mask, other) for other in masks[:i])


@pytest.mark.parametrize("name", ["auto", "eager"])
def test_dropout_of_none_and_of_all(name, monkeypatch):
    monkeypatch.setenv("HYPTRANS_KERNELS", name)
    x = torch.tensor([[-1.0, 2.0]])
    assert dropout.relu_dropout(x, 0.0) is x
    assert dropout.relu_dropout(x, 0.5, training=False) is x
    assert dropout.relu_dropout(x, 0.5, relu=True, training=False).tolist() == [[0.0, 2.0]]
    assert dropout.relu_dropout(x, 1.0).tolist() == [[0.0, 0.0]]
    with pytest.raises(ValueError, match=r"between 0 and 1, got 1\.5"):
        dropout.relu_dropout(x, 1.5)


def test_matrices_that_a_kernel_would_misread_are_refused():
    x = torch.ones(4, 3)
    for other, message in (
        (x.double(), "of torch.float32 and torch.float64"),
        (x.t(), "contig"),
        (x.to("meta"), "is on meta, not on the CPU"),
    ):
        with pytest.raises(ValueError, match=message):
            jobs.run(hyperboloid.lift_forward, 1, (x, other))


@pytest.mark.parametrize(("number", "size"), [(np.float32, 376), (np.float64, 400)])
def test_a_job_is_laid_out_as_it_is_written_and_as_its_picture_says(number, size):
    layout = jobs._layout(number)
    drawn = dict(re.findall(r"^ +(\d+)  \| (\w+)", jobs.__doc__, re.MULTILINE))
    assert {int(byte): name for byte, name in drawn.items()} == {
        layout.fields[name][1]: name.partition("_")[0] for name in layout.names
    }
    assert layout.itemsize == jobs._FLOATS[getattr(torch, number.__name__)][1].size == size
    assert f"{size} bytes in {number.__name__}" in jobs.__doc__


def test_the_exponential_function_of_kernels():
    @numba.njit
    def both(x, ours, expected):
        for i in range(x.size):
            ours[i] = exponential.exp(x[i])
            expected[i] = math.exp(float(x[i]))

    x = torch.cat([torch.linspace(-80, 80, 5001), torch.linspace(-1, 1, 5001)]).numpy()
    ours, expected = x.copy(), x.astype("float64")
    both(x, ours, expected)
    assert (abs(ours / expected - 1) <= 1e-7 * (3 + abs(x))).all()
    edges = torch.tensor([-torch.inf, -1e4, 1e4, torch.inf, torch.nan]).numpy()
    ours, expected = edges.copy(), edges.astype("float64")
    both(edges, ours, expected)
    assert (ours[:2] < 1e-37).all()
    assert (ours[2:4] > 1e38).all()
    assert math.isnan(ours[4])


NUMBERS = np.geomspace(1e-9, 1e3, 5001)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("ours", "library", "most", "digits"),
    [
        (exponential.log1p, np.log1p, 1e3, lambda x: 3e-7),
        (exponential.tanh_ratio, lambda x: np.tanh(x) / x, 1e3, lambda x: 4e-7),
        (exponential.sinh_ratio, lambda x: np.sinh(x) / x, 80.0, lambda x: 4e-7 * (1 + x)),
    ],
)
def test_the_other_functions_of_kernels(ours, library, most, digits, dtype):
    @numba.njit
    def all_of(x, out):
        for i in range(x.size):
            out[i] = ours(x[i])

    x = NUMBERS[most >= NUMBERS].astype(dtype)
    out = np.empty_like(x)
    all_of(x, out)
    exact = x.astype("float64")
    allowed = digits(exact) if dtype == "float32" else 1e-14
    assert (abs(out / library(exact) - 1) <= allowed).all()
    none, out = np.array([np.nan], dtype), np.empty(1, dtype)
    all_of(none, out)
    assert np.isnan(out).all()


def test_the_largest_of_a_row():
    row = np.array([-3.0, -1.5, -np.inf, -2.0], np.float32)
    assert exponential.largest_of(row) == -1.5
    row[2] = np.nan
    assert np.isnan(row - exponential.largest_of(row)).any()


# backends, threads and processes


def test_another_backend_is_an_error_that_names_the_choices(monkeypatch):
    monkeypatch.setenv("HYPTRANS_KERNELS", "fast")
    with pytest.raises(ValueError, match="auto, eager, numba, triton, inductor, got 'fast'"):
        points.POINTS.backend(torch.ones(2))


def test_a_curvature_a_row_is_left_to_eager(rng):
    space, c = numbers(rng, 3, 4), torch.tensor([[0.5], [1.0], [2.0]], dtype=torch.float64)
    torch.testing.assert_close(hyperboloid.lift(space, c=c), lorentz.lift(space, c=c))


def test_without_numba_the_eager_operators_run_with_one_warning(monkeypatch):
    monkeypatch.setattr(cpu, "MISSING", ImportError("No module named 'numba'"))
    operator._loaded.cache_clear()
    try:
        with pytest.warns(UserWarning, match="without numba kernels"):
            assert points.POINTS.backend(torch.ones(2)) == "eager"
        assert points.POINTS.backend(torch.ones(2)) == "eager"
    finally:
        operator._loaded.cache_clear()


@pytest.fixture(params=["team", "pool"])
def kind_of_threads(request, monkeypatch):
    """Kernels on torch's own threads, and on those of systems where torch has none to share."""
    if request.param == "pool":
        monkeypatch.setattr(threads, "_team", lambda: None)
    elif sys.platform == "linux":
        assert threads._team() is not None


@pytest.mark.usefixtures("kind_of_threads")
def test_the_number_of_threads_does_not_change_a_bit(rng):
    operands = operands_of("points with queries", drawn(torch.float32, shape=(25000,), width=6))
    assert operands[0].numel() > 3 * NUMBERS_PER_THREAD
    before = torch.get_num_threads()
    results = []
    try:
        for number in (1, 2, 3):
            torch.set_num_threads(number)
            torch.manual_seed(2)
            dropped = dropout.relu_dropout(operands[0], 0.2)
            results.append([*results_of(points.POINTS, operands, True), dropped])
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


@pytest.mark.usefixtures("kind_of_threads")
def test_threads_at_the_same_time(rng):
    operands = operands_of("points", drawn(torch.float32, shape=(100_000,), width=6))
    assert operands[0].numel() > 2 * NUMBERS_PER_THREAD
    expected = results_of(points.POINTS, operands, True)
    wrong = []

    def work():
        for _ in range(5):
            got = results_of(points.POINTS, operands, True)
            wrong.extend(
                n for n, (a, b) in enumerate(zip(got, expected, strict=True)) if (a != b).any()
            )

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


FORK = """
import os, torch
from hyptrans.kernels import hyperboloid
torch.set_num_threads(2)
x = torch.randn(100_000, 8, requires_grad=True)
def run():
    y = hyperboloid.lift(x)
    return torch.autograd.grad(y.square().sum(), x)[0].sum().item()
expected = run()
child = os.fork()
if child == 0:
    # autograd's own threads do not survive a fork: only the operator is tried
    with torch.no_grad():
        hyperboloid.lift(x)
    os._exit(0)
_, status = os.waitpid(child, 0)
assert status == 0, status
assert run() == expected
"""


def test_a_forked_process_has_kernels_and_so_has_its_parent():
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    subprocess.run([sys.executable, "-c", FORK], check=True, timeout=120, env=environment)


@pytest.mark.parametrize("shape", [(2, 2, 1, 3), (2, 2, 5, 3)])
def test_causal_weights_are_those_of_as_many_queries_as_keys(shape):
    # a kernel would read the keys of a later row
    with pytest.raises(RuntimeError, match="match"):
        weights.distance_weights(
            torch.full(shape, -2.0), -torch.ones(2), squared=True, is_causal=True
        )


def test_a_residual_of_several_heads_is_refused(rng):
    z, log_scale = numbers(rng, 2, 1, 2, 4), numbers(rng, 1)
    for residual in (numbers(rng, 2, 4), numbers(rng, 2, 8)):
        with pytest.raises(ValueError, match=r"one projection of one head, got \(1, 2\)"):
            points.points(z, log_scale, c=1.0, residual=residual)


def residual_of_widths(rng, bias, gain, shift):
    x, z = numbers(rng, 2, 3, 6, dtype=torch.float32) / 9
    others = [numbers(rng, *shape, dtype=torch.float32) for shape in (bias, (), gain, shift)]
    operands = ball_residual.ResidualOperands(x, z, *others)
    return ball_residual.norm_residual(operands, c=1.0, epsilon=1e-5, dropout=0.0)


def points_of_widths(rng, x, update, gain, bias):
    given = [numbers(rng, *shape, dtype=torch.float32) for shape in (x, update, gain, bias)]
    x, update, gain, bias = given
    return hypformer.norm_points(x, update, 1.0, gain, bias, c=1.0, epsilon=1e-5)


def weights_of_heads(rng, scales):
    products = -1 - numbers(rng, 2, 4, 3, 3, dtype=torch.float32).square()
    return weights.distance_weights(products, -torch.arange(1.0, scales + 1), squared=False)


# a kernel would read what does not belong to them, or write beyond its result
WRONG_WIDTHS = {
    "bias": lambda rng: residual_of_widths(rng, [3], [6], [6]),
    "gain": lambda rng: residual_of_widths(rng, [6], [4], [6]),
    "shift": lambda rng: residual_of_widths(rng, [6], [6], [12]),
    "update": lambda rng: points_of_widths(rng, [3, 8], [3, 5], [5], [5]),
    "layer norm": lambda rng: points_of_widths(rng, [3, 6], [3, 5], [5], [3]),
    "scales": lambda rng: weights_of_heads(rng, 2),
}


@pytest.mark.parametrize("operands", WRONG_WIDTHS.values(), ids=WRONG_WIDTHS)
def test_operands_of_wrong_widths_are_refused(operands, rng):
    with pytest.raises(RuntimeError, match=r"size|shape"):
        operands(rng)


def test_one_scale_for_all_heads_is_that_of_each(rng, monkeypatch):
    state = rng.get_state()
    ours = weights_of_heads(rng, 1)
    monkeypatch.setenv("HYPTRANS_KERNELS", "eager")
    assert_agree([ours], [weights_of_heads(rng.set_state(state), 1)], TOLERANCE[torch.float32])


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_a_learned_curvature_may_have_dimensions(shape, rng):
    x, update = (numbers(rng, 5, width, dtype=torch.float32) for width in (4, 3))
    results = []
    for given in (
        torch.full(shape, 0.5, requires_grad=True),
        torch.tensor(0.5, requires_grad=True),
    ):
        made = hypformer.norm_points(
            x, update, given, torch.ones(3), torch.zeros(3), c=given, epsilon=1e-5
        )
        total = made.sum() + hyperboloid.lift(update, c=given, relu=True).sum()
        results.append(torch.autograd.grad(total, given)[0].reshape(()))
    assert torch.equal(*results)
