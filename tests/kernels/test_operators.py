"""The numba kernels against the eager operators, their threads, and the choice of a backend."""

import os
import re
import subprocess
import sys
import threading
from functools import partial

import numba
import numpy as np
import pytest
import torch

from hyptrans.geometry import poincare
from hyptrans.kernels import (
    backend,
    cpu,
    cuda,
    dropout,
    linear_attention,
    lorentz,
    poincare_residual,
)
from hyptrans.kernels import poincare as poincare_kernels
from hyptrans.kernels.lorentz import from_linear, normalize
from hyptrans.kernels.lorentz_cpu import linear_forward
from hyptrans.kernels.poincare import add_tangents
from hyptrans.kernels.poincare_residual import norm_residual
from hyptrans.support.errors import UserError
from tests.kernels.cases import CASES, Draw, numbers, results_of
from tests.kernels.contract import KernelContract


class TestNumba(KernelContract):
    kernels = "numba"

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
    @pytest.mark.parametrize("name", CASES)
    def test_no_digit_depends_on_where_the_matrices_lie(self, name, dtype, monkeypatch):
        for rows, width in [(3, 6), (2, 9), (40, 16), (5, 33), (70, 64)]:
            case = CASES[name](Draw(dtype, shape=(rows,), width=width))
            found = []
            for order, gap in [(1, 8192), (1, 0), (-1, 0), (1, 64), (-1, 64), (1, 512)]:
                placed = partial(run_in_one_piece, order, gap)
                for module in (lorentz, poincare_kernels, poincare_residual, linear_attention):
                    monkeypatch.setattr(module, "run", placed)
                found.append(results_of(case, self.kernels, monkeypatch))
            for other in found[1:]:
                assert all(map(torch.equal, found[0], other))


def run_in_one_piece(order, gap, kernel, matrices, *numbers, **options):
    """Let a kernel compute with its matrices one behind the other, ``gap`` bytes apart."""
    given = [x for x in matrices if x is not None][::order]
    step = gap // given[0].element_size()
    piece = given[0].new_zeros(sum(x.numel() + step for x in given))
    parts = piece.split([size for x in given for size in (x.numel(), step)])[::2]
    placed = {id(x): part.view(x.shape).copy_(x) for x, part in zip(given, parts, strict=True)}
    backend.run(kernel, [x if x is None else placed[id(x)] for x in matrices], *numbers, **options)
    for x in given:
        x.copy_(placed[id(x)])


def test_half_precision_gives_float32_points(rng):
    z = numbers(rng, 5, 1, 1, 8, dtype=torch.bfloat16).requires_grad_()
    out = from_linear(z, torch.ones(1, dtype=torch.bfloat16), c=1.0)
    assert out.dtype == torch.float32
    (grad,) = torch.autograd.grad(out.sum(), z)
    assert grad.dtype == torch.bfloat16


@pytest.mark.parametrize(
    "shapes", [((1, 4), (3, 4)), ((3, 4), ()), ((3, 4), (1, 4)), ((3, 4), (1,))]
)
def test_mobius_addition_broadcasts_like_its_formula(shapes, rng):
    u, v = (torch.randn(shape, generator=rng) for shape in shapes)
    torch.testing.assert_close(add_tangents(u, v), poincare.add_tangents(u, v))


# dropout


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("p", [0.1, 0.5, 0.97])
def test_dropout_keeps_the_right_share_and_scales_it(p, relu, rng):
    x = numbers(rng, 300, 200).requires_grad_()
    torch.manual_seed(5)
    y = dropout.relu_dropout(x, p, relu=relu)
    (grad,) = torch.autograd.grad(y.sum(), x)
    base = x.relu() if relu else x
    kept = y != 0
    share = kept.sum() / (base != 0).sum()
    assert abs(share - (1 - p)) < 5 * (p * (1 - p) / (base != 0).sum()) ** 0.5
    torch.testing.assert_close(y, torch.where(kept, base / (1 - p), 0))
    torch.testing.assert_close(grad, kept / (1 - p), check_dtype=False)


def test_dropout_follows_the_seed_of_torch():
    x = torch.ones(64, 64)
    torch.manual_seed(3)
    first, other = dropout.relu_dropout(x, 0.3), dropout.relu_dropout(x, 0.3)
    torch.manual_seed(3)
    assert torch.equal(dropout.relu_dropout(x, 0.3), first)
    assert not torch.equal(other, first)
    assert dropout.relu_dropout(torch.tensor(2.0), 0.5).item() in (0.0, 4.0)


@pytest.mark.parametrize("seed", [1, 2**40 + 1, 2**63 - 2])
def test_dropout_mask_follows_the_hash_of_the_seed(seed, monkeypatch, rng):
    monkeypatch.setattr(dropout, "drawn_seed", lambda: seed)
    x = numbers(rng, 30, 70, dtype=torch.float32).abs() + 1
    kept = dropout.relu_dropout(x, 0.25) != 0
    assert torch.equal(kept.cpu(), hashes(seed, *x.shape) >= 2**30)


def hashes(seed, rows, columns):
    """lowbias32 of a seed and a place, as of Python's numbers."""
    bits = 0xFFFFFFFF

    def mixed(h):
        h = ((h ^ (h >> 16)) * 0x7FEB352D) & bits
        h = ((h ^ (h >> 15)) * 0x846CA68B) & bits
        return h ^ (h >> 16)

    found = torch.empty(rows, columns, dtype=torch.int64, device="cpu")
    for row in range(rows):
        key = mixed((row + seed) & bits) ^ (seed >> 32)
        for column in range(columns):
            found[row, column] = mixed((key + column * dropout.GOLDEN) & bits)
    return found


@pytest.mark.parametrize("name", ["auto", "eager"])
def test_dropout_handles_probabilities_zero_and_one(name, monkeypatch):
    monkeypatch.setattr(backend, "CHOSEN", name)
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
        with pytest.raises(ValueError, match=message), torch.no_grad():
            backend.run(linear_forward, (x, other))


@pytest.mark.parametrize(("number", "size"), [(np.float32, 312), (np.float64, 336)])
def test_job_layout_matches_its_definition_and_documentation(number, size):
    layout = backend._layout(number)
    drawn = dict(re.findall(r"^ +(\d+)  \| (\w+)", backend.__doc__, re.MULTILINE))
    assert {int(byte): name for byte, name in drawn.items()} == {
        layout.fields[name][1]: name.partition("_")[0] for name in layout.names
    }
    assert layout.itemsize == backend._FLOATS[getattr(torch, number.__name__)][1].size == size
    assert f"{size} bytes in {number.__name__}" in backend.__doc__


def applied(function, x):
    """What a function of kernels gives for each number."""

    @numba.njit
    def all_of(x, out):
        for i in range(x.size):
            out[i] = function(x[i])

    out = np.empty_like(x)
    all_of(x, out)
    return out


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("ours", "library", "numbers", "digits"),
    [
        (cpu.exp, np.exp, np.linspace(-80, 80, 10001), lambda x: 1e-7 * (3 + abs(x))),
        (cpu.log1p, np.log1p, np.geomspace(1e-9, 1e3, 5001), lambda x: 3e-7),
        (cpu.tanh_ratio, lambda x: np.tanh(x) / x, np.geomspace(1e-9, 1e3, 5001), lambda x: 4e-7),
    ],
)
def test_functions_of_kernels_are_accurate(ours, library, numbers, digits, dtype):
    x = numbers.astype(dtype)
    exact = x.astype("float64")
    allowed = digits(exact) if dtype == "float32" else 1e-14
    assert (abs(applied(ours, x) / library(exact) - 1) <= allowed).all()
    assert np.isnan(applied(ours, np.array([np.nan], dtype))).all()


def test_exponentials_in_kernels_stay_finite_far_out():
    found = applied(cpu.exp, np.array([-np.inf, -1e4, 1e4, np.inf], "float32"))
    assert (found[:2] < 1e-37).all()
    assert (found[2:] > 1e38).all()


# backends, threads and processes


def test_error_for_an_unknown_backend_names_the_choices(monkeypatch):
    monkeypatch.setattr(backend, "CHOSEN", "fast")
    with pytest.raises(UserError, match="auto, eager, numba, triton, got 'fast'"):
        backend.backend(torch.ones(2))


@pytest.mark.parametrize(("value", "expected"), [("", "numba"), ("eager", "eager")])
def test_variable_selects_the_backend_and_empty_means_unset(value, expected):
    code = (
        "import torch; from hyptrans.kernels.backend import backend; print(backend(torch.ones(2)))"
    )
    environment = {**os.environ, "HYPTRANS_KERNELS": value}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [expected]


def test_curvatures_by_row_fall_back_to_eager(rng):
    v, c = numbers(rng, 3, 4), torch.tensor([[0.5], [1.0], [2.0]], dtype=torch.float64)
    v[:, 0] = 9
    for row, made in enumerate(normalize(v, c=c)):
        torch.testing.assert_close(made, normalize(v[row], c=c[row].item()))


def test_constants_cached_in_inference_mode_work_in_training():
    cuda._on_device.cache_clear()
    with torch.inference_mode():
        kept = cuda.device_constants((1.5, 2.5), torch.ones(2))
    assert not kept.is_inference()
    x = torch.ones(2, requires_grad=True)
    (x * kept).sum().backward()
    assert x.grad.tolist() == [1.5, 2.5]


@pytest.mark.parametrize("team", [True, False])
def test_results_do_not_depend_on_the_number_of_threads(team, monkeypatch):
    if not team:
        monkeypatch.setattr(backend, "_team", lambda: None)
    elif sys.platform == "linux":
        assert backend._team() is not None
    case = CASES["points of three projections"](Draw(torch.float32, shape=(25000,), width=6))
    assert case.operands[0].numel() > 3 * backend.NUMBERS_PER_MEMBER
    before, found = torch.get_num_threads(), []
    try:
        for number in (1, 2, 3):
            torch.set_num_threads(number)
            torch.manual_seed(2)
            dropped = dropout.relu_dropout(case.operands[0], 0.2)
            found.append([*results_of(case, "numba", monkeypatch), dropped])
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        assert all(map(torch.equal, found[0], other))


def test_kernels_run_in_concurrent_threads(monkeypatch):
    case = CASES["points"](Draw(torch.float32, shape=(100_000,), width=6))
    assert case.operands[0].numel() > 2 * backend.NUMBERS_PER_MEMBER
    expected, wrong = results_of(case, "numba", monkeypatch), []

    def work():
        for _ in range(5):
            made = case.function(*case.operands)
            wrong.append(not torch.equal(made, expected[0]))

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(wrong) == 20
    assert not any(wrong)


FORK = """
import os, torch
from hyptrans.kernels.lorentz import normalize
torch.set_num_threads(2)
x = torch.randn(100_000, 8).index_fill(1, torch.tensor([0]), 99).requires_grad_()
def run():
    y = normalize(x)
    return torch.autograd.grad(y.square().sum(), x)[0].sum().item()
expected = run()
child = os.fork()
if child == 0:
    # autograd's own threads do not survive a fork: only the operator is tried
    with torch.no_grad():
        normalize(x)
    os._exit(0)
_, status = os.waitpid(child, 0)
assert status == 0, status
assert run() == expected
"""


def test_kernels_run_in_a_forked_process_and_its_parent():
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    subprocess.run([sys.executable, "-c", FORK], check=True, timeout=120, env=environment)


def test_a_residual_of_several_heads_is_refused(rng):
    z, log_scale = numbers(rng, 2, 1, 2, 4), numbers(rng, 1)
    for residual in (numbers(rng, 2, 4), numbers(rng, 2, 8)):
        with pytest.raises(ValueError, match=r"one projection of one head, got \(1, 2\)"):
            from_linear(z, log_scale, c=1.0, residual=residual)


def test_too_few_log_scales_are_refused(rng):
    with pytest.raises(ValueError, match=r"3 projections need as many log scales, got \(1,\)"):
        from_linear(numbers(rng, 5, 3, 4, 8), numbers(rng, 1), c=1.0)


# a kernel would read what does not belong to them, or write beyond its result
@pytest.mark.parametrize(
    ("bias", "gain", "shift"), [([3], [6], [6]), ([6], [4], [6]), ([6], [6], [12])]
)
def test_operands_of_wrong_widths_are_refused(bias, gain, shift, rng):
    x, z = numbers(rng, 2, 3, 6, dtype=torch.float32) / 9
    others = [numbers(rng, *shape, dtype=torch.float32) for shape in (bias, (), gain, shift)]
    with pytest.raises(RuntimeError, match=r"size|shape"):
        norm_residual(x, z, *others, c=1.0, epsilon=1e-5, dropout=0.0)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_a_learned_curvature_may_have_any_shape(shape, rng):
    v, found = numbers(rng, 5, 4), []
    v[:, 0] = 9
    for given in (torch.full(shape, 0.5), torch.tensor(0.5)):
        given = given.double().requires_grad_()
        found.append(torch.autograd.grad(normalize(v, c=given).sum(), given)[0])
    assert found[0].shape == shape
    assert torch.equal(found[0].reshape(()), found[1])
