"""What kernels of any backend must do, as tests; a backend's test class inherits them."""

import pytest
import torch

from hyptrans.geometry import lorentz
from hyptrans.kernels import backend
from hyptrans.kernels.lorentz import from_linear, normalize
from tests.geometry.helpers import CURVATURES
from tests.kernels.cases import (
    CASES,
    ON_TRITON,
    TOLERANCE,
    WITH_GRADIENTS,
    Draw,
    assert_agree,
    by_a_kernel,
    numbers,
    results_of,
)

SIZES = [((n,), 6) for n in (1, 700)] + [((2, 3, 0), 6), ((50, 100), 6)]
SIZES += [((3, 3), width) for width in (2, 16, 33, 500, 2500)]
"""Leading dimensions and widths: one row, none, many, and rows of any width."""


def both_of(name, draw, kernels, monkeypatch):
    """Results and gradients by a backend, and by the formula."""
    case = CASES[name](draw)
    return [results_of(case, way, monkeypatch) for way in (kernels, "eager")]


class KernelContract:
    """``kernels`` names the backend, ``fast_gradcheck`` says that it takes its time."""

    kernels: str
    fast_gradcheck = False
    tolerance = TOLERANCE

    @pytest.fixture(autouse=True)
    def _chosen(self, monkeypatch, request):
        parameters = request.node.callspec.params if hasattr(request.node, "callspec") else {}
        if self.kernels == "triton" and parameters.get("name", "points") not in ON_TRITON:
            pytest.skip("no kernel of this backend")
        monkeypatch.setattr(backend, "CHOSEN", self.kernels)
        assert backend.backend(torch.ones(1), triton=True) == self.kernels

    @pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
    @pytest.mark.parametrize("name", CASES)
    def test_kernels_agree_with_the_formula(self, name, dtype, monkeypatch):
        for shape, width in SIZES:
            if width > 33 and name == "step of linear attention":
                continue  # its sums have the square of a row's numbers
            # gradients of a residual's parameters are sums of thousands of rows
            factor = 5 if width != 6 else 3 if name.startswith("residual") else 1
            results = both_of(
                name, Draw(dtype, shape=shape, width=width), self.kernels, monkeypatch
            )
            assert_agree(*results, factor * self.tolerance[dtype])

    @pytest.mark.parametrize("c", CURVATURES)
    @pytest.mark.parametrize("name", WITH_GRADIENTS)
    def test_gradients_agree_with_finite_differences(self, name, c):
        function, operands, _ = CASES[name](Draw(shape=(2, 3), width=6, c=c))
        inputs = [x.requires_grad_() for x in operands]
        assert by_a_kernel(function(*inputs))
        assert torch.autograd.gradcheck(function, inputs, fast_mode=self.fast_gradcheck)

    @pytest.mark.parametrize("size", [1e-20, 1e-4, 1e4])
    @pytest.mark.parametrize("name", CASES)
    def test_kernels_handle_extreme_sizes(self, name, size, monkeypatch):
        if name.startswith("residual") and size >= 1e2:
            pytest.skip("at the clamp beta's gradient is a thousandth of its terms")
        case = CASES[name](Draw(torch.float32, shape=(5, 8), width=6))
        case.operands[0].mul_(size)
        tolerance = 1e-2 if name.startswith("residual") else 3e-4
        results = (results_of(case, way, monkeypatch) for way in (self.kernels, "eager"))
        for ours, expected in zip(*results, strict=True):
            assert torch.isfinite(ours).all()
            if name.startswith("residual") and not ours.dim():
                continue  # the norm takes away all of beta's gradient but its rounding
            scale = expected.abs().max().clamp_min(1e-30).item()
            torch.testing.assert_close(ours, expected, rtol=0, atol=tolerance * scale)

    @pytest.mark.parametrize("name", CASES)
    def test_nan_propagates_only_within_its_row(self, name, monkeypatch):
        function, operands, _ = CASES[name](Draw(torch.float32, shape=(4, 3), width=6))
        rows = operands[0].contiguous()
        rows.view(-1, rows.size(-1))[[2, 5], [0, 3]] = torch.nan
        made = []
        for way in (self.kernels, "eager"):
            monkeypatch.setattr(backend, "CHOSEN", way)
            with torch.no_grad():
                found = function(rows, *operands[1:])
            made.append([found] if isinstance(found, torch.Tensor) else list(found))
        for got, wanted in zip(*made, strict=True):
            assert torch.equal(got.isnan().any(-1), wanted.isnan().any(-1))

    @pytest.mark.parametrize("name", WITH_GRADIENTS)
    def test_inputs_and_gradients_may_have_any_memory_layout(self, name, rng):
        function, operands, _ = CASES[name](Draw(shape=(6, 4), width=6))
        wide = torch.zeros(*operands[0].shape, 2, dtype=torch.float64)
        wide[..., 1] = operands[0]
        inputs = [x.requires_grad_() for x in (wide[..., 1], *operands[1:])]
        out = function(*inputs)
        assert torch.equal(out, function(operands[0], *inputs[1:]))
        grad = numbers(rng, *out.shape)
        strided = grad.transpose(0, 1).contiguous().transpose(0, 1)
        found = [torch.autograd.grad(out, inputs, g, retain_graph=True) for g in (grad, strided)]
        assert all(map(torch.equal, *found))

    @pytest.mark.parametrize("name", WITH_GRADIENTS)
    def test_gradients_do_not_share_memory(self, name, monkeypatch):
        found = results_of(CASES[name](Draw(shape=(6, 4), width=6)), self.kernels, monkeypatch)
        for i, one in enumerate(found):
            others = [x.clone() for x in found[:i] + found[i + 1 :]]
            one.add_(1)
            assert all(map(torch.equal, found[:i] + found[i + 1 :], others))

    @pytest.mark.parametrize("name", CASES)
    def test_a_second_run_is_bitwise_identical(self, name, monkeypatch):
        case = CASES[name](Draw(torch.float32, shape=(30, 100), width=6))
        first, second = (results_of(case, self.kernels, monkeypatch) for _ in range(2))
        assert all(map(torch.equal, first, second))

    @pytest.mark.parametrize("name", WITH_GRADIENTS)
    def test_a_second_derivative_is_refused(self, name):
        function, operands, _ = CASES[name](Draw(shape=(2, 3), width=6))
        total = function(*(x.requires_grad_() for x in operands)).square().sum()
        with pytest.raises(RuntimeError, match="HYPTRANS_KERNELS=eager"):
            torch.autograd.grad(total, operands, create_graph=True)

    @pytest.mark.parametrize("radius", [1.0, 5.0, 9.9])
    def test_results_lie_on_the_hyperboloid(self, radius, rng):
        space = numbers(rng, 400, 15, dtype=torch.float32)
        space *= torch.sinh(torch.tensor(radius)) / space.norm(dim=-1, keepdim=True)
        assert lorentz.violation(normalize(3 * lorentz.lift(space))).max() < 2e-6
        z = torch.cat([numbers(rng, 400, 1, dtype=torch.float32), space], dim=-1)
        made = from_linear(z[:, None, None], torch.tensor([radius]), c=1.0)
        assert lorentz.violation(made).max() < 2e-6

    def test_a_spacelike_sum_is_scaled_by_the_formula(self, rng, monkeypatch):
        v = numbers(rng, 50, 6, dtype=torch.float32)
        v[:, 0] = v[:, 1:].norm(dim=-1) * 0.999
        made = []
        for way in (self.kernels, "eager"):
            monkeypatch.setattr(backend, "CHOSEN", way)
            given = v.clone().requires_grad_()
            out = normalize(given)
            made.append([out, *torch.autograd.grad(out.sum(), given)])
        assert torch.isfinite(made[0][0]).all()
        for ours, expected in zip(*made, strict=True):
            size = expected.abs().max().item()
            torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-4 * size)

    @pytest.mark.parametrize("odd", ["z", "log_scale", "residual"])
    def test_mixed_dtypes_promote_to_the_wider_one(self, odd, rng):
        given = {"z": numbers(rng, 300, 1, 1, 8), "log_scale": numbers(rng, 1)}
        given["residual"] = numbers(rng, 300, 8)
        expected = from_linear(**given, c=0.5)
        given = {n: x if n == odd else x.float() for n, x in given.items()}
        inputs = [x.requires_grad_() for x in given.values()]
        made = from_linear(**given, c=0.5)
        assert made.dtype == torch.float64
        torch.testing.assert_close(made, expected, rtol=0, atol=1e-5)
        found = torch.autograd.grad(made.sum(), inputs)
        assert [g.dtype for g in found] == [x.dtype for x in inputs]

    def test_log_scales_may_be_expanded_or_strided(self, rng):
        z = numbers(rng, 300, 3, 4, 8)
        for scale in (numbers(rng, 1).expand(3), numbers(rng, 6)[::2]):
            made = from_linear(z, scale, c=1.0)
            torch.testing.assert_close(made, from_linear(z, scale.clone(), c=1.0))

    def test_kernels_broadcast_one_residual_over_all_sentences(self, rng):
        z, scale, r = numbers(rng, 2, 30, 1, 1, 8), numbers(rng, 1), numbers(rng, 1, 30, 8)
        made = from_linear(z, scale, c=1.0, residual=r)
        each = from_linear(z, scale, c=1.0, residual=r.repeat(2, 1, 1))
        torch.testing.assert_close(made, each, rtol=0, atol=0)
