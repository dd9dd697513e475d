"""What kernels of any backend must do, as tests; a backend's test class inherits them.

All operators of the registry are tested, with the cases that they have for their own check.
"""

import functools

import pytest
import torch
from torch.autograd.function import BackwardCFunction

from hyptrans.geometry import lorentz
from hyptrans.kernels import dropout, hyperboloid, points
from hyptrans.kernels.check import families, results_of
from hyptrans.kernels.operator import REGISTRY, Draw
from tests.geometry.helpers import CURVATURES
from tests.kernels import unit_rows  # noqa: F401 - an operator that is one file

SHAPES = [(1,), (3, 5), (2, 3, 0), (700,), (2, 130), (50, 100)]
TOLERANCE = {torch.float64: 1e-12, torch.float32: 2e-5}
CPU = torch.device("cpu")

families()


def drawn(dtype=torch.float64, seed=0, device=None, **sizes):
    device = device or torch.get_default_device()
    return Draw(torch.Generator("cpu").manual_seed(seed), device, dtype, **sizes)


CASES = {
    name: operator
    for operator in REGISTRY.values()
    for name, _ in operator.cases(drawn(shape=(1, 1)))
}
ILL_CONDITIONED = {("norm of points", 2), ("mean of heads", 2500)}
"""The norm of two numbers is a sign; so many numbers of a sum beyond the clamp cancel."""
NOTHING_TO_COMPARE = {
    *((name, size) for name in ("lifted heads", "mean of heads") for size in (1e2, 1e4)),
    *((f"residual with norm{more}", size) for more in ("", " and dropout") for size in (1e2, 1e4)),
    *(
        (name, size)
        for name in ("weights of squared distances", "norm of points")
        for size in (1e-12, 1e-4)
    ),
    *(("causal weights of squared distances", size) for size in (1e-12, 1e-4)),
}
"""Times of large tangents are infinite; at the clamp beta's gradient is a thousandth of its terms,
and in float32 the plain formulas miss it by as much; where all weights are equal, or a layer norm
takes away the one scale that there is, gradients are rounding alone."""


def numbers(rng, *shape, dtype=torch.float64):
    drawn = torch.randn(shape, generator=rng, dtype=torch.float64, device=rng.device)
    return drawn.to(torch.get_default_device(), dtype)


def operands_of(name, draw):
    return dict(CASES[name].cases(draw))[name]


def gradients_of(name):
    """Whether a case has gradients to compare."""
    return CASES[name].kernels["numba"].backward is not None


def both_of(name, draw, monkeypatch, kernels):
    """Outputs and gradients of the operator by a backend, and by the formula."""
    operator, operands = CASES[name], operands_of(name, draw)
    monkeypatch.setenv("HYPTRANS_KERNELS", kernels)
    with torch.no_grad():
        assert operator.backend(operands[0]) == (kernels if operands[0].numel() else "eager")
    return [
        results_of(function, operands, gradients_of(name))
        for function in (operator, operator.plain)
    ]


def with_gradients(inputs, call, seed=1):
    outputs = call()
    device = outputs[0].device
    rng = torch.Generator(device).manual_seed(seed)
    weights = [
        torch.randn(o.shape, generator=rng, dtype=torch.float64, device=device).to(o.dtype)
        for o in outputs
    ]
    total = sum((o * w).sum() for o, w in zip(outputs, weights, strict=True))
    return [*outputs, *torch.autograd.grad(total, inputs)]


def both(monkeypatch, inputs, call, kernels):
    """Outputs and gradients of the kernels, and of the eager operators."""
    monkeypatch.setenv("HYPTRANS_KERNELS", kernels)
    kernel = with_gradients(inputs, call)
    monkeypatch.setenv("HYPTRANS_KERNELS", "eager")
    eager = with_gradients(inputs, call)
    # else one would be compared with itself, as where there is nothing to compute
    assert _by_a_kernel(kernel) or not all(one.numel() for one in inputs)
    return kernel, eager


def _by_a_kernel(outputs):
    """Whether a function with a backward of its own is among what made the outputs."""
    waiting = [one.grad_fn for one in outputs]
    while waiting:
        made = waiting.pop()
        if isinstance(made, BackwardCFunction):
            return True
        waiting += [before for before, _ in made.next_functions] if made is not None else []
    return False


def assert_agree(kernel, eager, tolerance):
    for ours, expected in zip(kernel, eager, strict=True):
        assert ours.shape == expected.shape
        assert ours.dtype == expected.dtype
        assert ours.device == expected.device
        scale = expected.abs().max().clamp_min(1).item() if expected.numel() else 1
        torch.testing.assert_close(ours, expected, rtol=0, atol=tolerance * scale)


def _is_differentiable(x):
    return isinstance(x, torch.Tensor) and x.is_floating_point()


def _copied(x):
    return x.clone() if isinstance(x, torch.Tensor) else x


def _listed(made):
    return [made] if isinstance(made, torch.Tensor) else list(made)


class KernelContract:
    """``kernels`` names the backend, ``fast_gradcheck`` says that it takes its time."""

    kernels: str
    fast_gradcheck = False
    tolerance = TOLERANCE

    @pytest.fixture(autouse=True)
    def _chosen(self, monkeypatch, request):
        parameters = request.node.callspec.params if hasattr(request.node, "callspec") else {}
        if "name" in parameters and not CASES[parameters["name"]].kernels[self.kernels]:
            pytest.skip("no kernel of this backend")
        monkeypatch.setenv("HYPTRANS_KERNELS", self.kernels)
        assert points.POINTS.backend(torch.ones(1)) == self.kernels

    @pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
    @pytest.mark.parametrize("shape", SHAPES, ids=str)
    @pytest.mark.parametrize("name", CASES)
    def test_kernels_agree_with_the_formula(self, name, shape, dtype, monkeypatch):
        draw = drawn(dtype, shape=shape, width=6)
        # gradients of a residual's parameters are sums of thousands of rows
        tolerance = self.tolerance[dtype] * (3 if name.startswith("residual") else 1)
        assert_agree(*both_of(name, draw, monkeypatch, self.kernels), tolerance)

    @pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
    @pytest.mark.parametrize("width", [2, 16, 33, 500, 2500])
    @pytest.mark.parametrize("name", CASES)
    def test_rows_of_any_width(self, name, width, dtype, monkeypatch):
        if (name, width) in ILL_CONDITIONED:
            pytest.skip("float32 has nothing left to compare")
        draw = drawn(dtype, shape=(3, 3), width=width)
        assert_agree(*both_of(name, draw, monkeypatch, self.kernels), self.tolerance[dtype] * 5)

    @pytest.mark.parametrize("c", CURVATURES)
    @pytest.mark.parametrize("name", [*filter(gradients_of, CASES)])
    def test_gradients_agree_with_finite_differences(self, name, c):
        operands = list(operands_of(name, drawn(shape=(2, 3), width=6, c=c)))
        places = [i for i, x in enumerate(operands) if _is_differentiable(x)]

        def call(*given):
            for i, x in zip(places, given, strict=True):
                operands[i] = x
            return CASES[name].run(self.kernels, *operands)

        inputs = [operands[i].requires_grad_() for i in places]
        assert torch.autograd.gradcheck(call, inputs, fast_mode=self.fast_gradcheck)

    @pytest.mark.parametrize("size", [1e-12, 1e-4, 1e2, 1e4])
    @pytest.mark.parametrize("name", CASES)
    def test_extreme_sizes(self, name, size):
        if (name, size) in NOTHING_TO_COMPARE:
            pytest.skip("float32 has nothing left to compare")
        operands = list(operands_of(name, drawn(torch.float32, shape=(5, 8), width=6)))
        operands[0] = operands[0] * size
        # gradients of beta, and of a radius that tanh has levelled, are rests of larger terms
        tolerance = 1e-2 if name.startswith(("residual", "polar")) else 3e-4
        function = functools.partial(CASES[name].run, self.kernels)
        for ours, expected in zip(
            results_of(function, operands, gradients_of(name)),
            results_of(CASES[name].plain, operands, gradients_of(name)),
            strict=True,
        ):
            assert torch.isfinite(ours).all()
            scale = expected.abs().max().clamp_min(1e-30).item()
            torch.testing.assert_close(ours, expected, rtol=0, atol=tolerance * scale)

    @pytest.mark.parametrize("column", [0, 3])
    @pytest.mark.parametrize("name", CASES)
    def test_nan_is_not_hidden_and_stays_in_its_row(self, name, column):
        operands = list(operands_of(name, drawn(torch.float32, shape=(4, 3), width=6)))
        # of a tensor that may be a view
        operands[0] = operands[0].clone(memory_format=torch.contiguous_format)
        operands[0].view(-1, operands[0].size(-1))[2, min(column, operands[0].size(-1) - 1)] = (
            torch.nan
        )
        with torch.no_grad():
            ours = CASES[name].run(self.kernels, *map(_copied, operands))
            expected = CASES[name].plain(*map(_copied, operands))
        for got, wanted in zip(_listed(ours), _listed(expected), strict=True):
            assert torch.equal(got.isnan().any(-1), wanted.isnan().any(-1))

    @pytest.mark.parametrize("name", [*filter(gradients_of, CASES)])
    def test_inputs_and_gradients_may_lie_anyhow_in_memory(self, name, rng):
        function = functools.partial(CASES[name].run, self.kernels)
        operands = list(operands_of(name, drawn(shape=(6, 4), width=6)))
        straight = results_of(function, operands, True)
        wide = torch.zeros(*operands[0].shape, 2, dtype=torch.float64)
        wide[..., 1] = operands[0]
        operands[0] = wide[..., 1]
        assert not operands[0].is_contiguous()
        for ours, expected in zip(results_of(function, operands, True), straight, strict=True):
            torch.testing.assert_close(ours, expected, rtol=0, atol=0)
        inputs = [x.requires_grad_() for x in operands if _is_differentiable(x)]
        for out in _listed(function(*operands)):
            grad = numbers(rng, *out.shape)
            found = [
                torch.autograd.grad(out, inputs, given, retain_graph=True, allow_unused=True)
                for given in (grad, grad.transpose(0, 1).contiguous().transpose(0, 1))
            ]
            for ours, expected in zip(*found, strict=True):
                if expected is not None:
                    torch.testing.assert_close(ours, expected, rtol=0, atol=0)

    @pytest.mark.parametrize("name", [*filter(gradients_of, CASES)])
    def test_a_gradient_may_be_written_over_without_harm_to_another(self, name):
        operands = operands_of(name, drawn(shape=(6, 4), width=6))
        found = results_of(functools.partial(CASES[name].run, self.kernels), operands, True)
        for i, one in enumerate(found):
            others = [x.clone() for x in found[:i] + found[i + 1 :]]
            one.add_(1)
            assert all(map(torch.equal, found[:i] + found[i + 1 :], others))

    @pytest.mark.parametrize("name", CASES)
    def test_a_second_run_does_not_differ_in_a_bit(self, name):
        operands = operands_of(name, drawn(torch.float32, shape=(30, 100), width=6))
        function = functools.partial(CASES[name].run, self.kernels)
        first, second = (results_of(function, operands, gradients_of(name)) for _ in range(2))
        assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))

    @pytest.mark.parametrize("radius", [1.0, 5.0, 9.9])
    def test_results_lie_on_the_hyperboloid(self, radius, rng):
        space = numbers(rng, 400, 15, dtype=torch.float32)
        space *= torch.sinh(torch.tensor(radius)) / space.norm(dim=-1, keepdim=True)
        lifted = hyperboloid.lift(space)
        assert lorentz.violation(lifted).max() < 2e-6
        assert lorentz.violation(hyperboloid.normalize(lifted * 3)).max() < 2e-6
        z = torch.cat([numbers(rng, 400, 1, dtype=torch.float32), space], dim=-1)
        (made,) = points.points(z[:, None, None], torch.tensor([radius]), c=1.0)
        assert lorentz.violation(made).max() < 2e-6

    def test_a_space_like_sum_is_scaled_as_by_the_eager_operator(self, rng, monkeypatch):
        v = numbers(rng, 50, 6, dtype=torch.float32)
        v[:, 0] = v[:, 1:].norm(dim=-1) * 0.999
        v.requires_grad_()
        kernel, eager = both(monkeypatch, [v], lambda: (hyperboloid.normalize(v),), self.kernels)
        assert torch.isfinite(kernel[0]).all()
        for ours, expected in zip(kernel, eager, strict=True):
            size = expected.abs().max().item()
            torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-4 * size)

    @pytest.mark.parametrize("odd", ["z", "log_scale", "residual", "query_factor"])
    def test_inputs_of_two_dtypes_meet_in_the_longer_one(self, odd, rng, monkeypatch):
        given = {
            "z": numbers(rng, 300, 1, 1, 8),
            "log_scale": numbers(rng, 1),
            "residual": numbers(rng, 300, 8),
            "query_factor": torch.tensor(0.7, dtype=torch.float64),
        }
        expected = points.points(**given, c=0.5)
        given = {n: x if n == odd else x.float() for n, x in given.items()}
        inputs = [x.requires_grad_() for x in given.values()]
        kernel, eager = both(
            monkeypatch, inputs, lambda: points.points(**given, c=0.5), self.kernels
        )
        assert kernel[0].dtype == torch.float64
        assert_agree(kernel, eager, 1e-6)
        torch.testing.assert_close(kernel[0], expected[0], rtol=0, atol=1e-5)

    def test_log_scales_may_be_expanded_or_apart(self, rng, monkeypatch):
        z = numbers(rng, 300, 3, 4, 8).requires_grad_()
        for scale in (numbers(rng, 1).expand(3), numbers(rng, 6)[::2]):
            scale.requires_grad_()
            results = both(
                monkeypatch, [z, scale], lambda s=scale: points.points(z, s, c=1.0), self.kernels
            )
            assert_agree(*results, 1e-12)

    def test_a_log_scale_too_few_is_refused(self, rng):
        with pytest.raises(ValueError, match=r"3 projections need as many log scales, got \(1,\)"):
            points.points(numbers(rng, 5, 3, 4, 8), numbers(rng, 1), c=1.0)

    def test_one_residual_for_all_sentences(self, rng, monkeypatch):
        z, scale = numbers(rng, 2, 300, 1, 1, 8).requires_grad_(), numbers(rng, 1).requires_grad_()
        residual = numbers(rng, 1, 300, 8).requires_grad_()
        results = both(
            monkeypatch,
            [z, scale, residual],
            lambda: points.points(z, scale, c=1.0, residual=residual),
            self.kernels,
        )
        assert_agree(*results, 1e-12)

    def test_more_projections_than_a_kernel_takes_are_left_to_the_formula(self, rng):
        z, scale = numbers(rng, 20, 7, 2, 8).requires_grad_(), numbers(rng, 7).requires_grad_()
        together = points.points(z, scale, c=1.0)
        assert not _by_a_kernel(together)
        for i, made in enumerate(together):
            one = slice(i, i + 1)
            (alone,) = points.points(z[..., one, :, :], scale[one], c=1.0)
            assert _by_a_kernel([alone])
            torch.testing.assert_close(made, alone, rtol=1e-12, atol=1e-12)

    def test_dropout_of_a_single_number(self):
        assert dropout.relu_dropout(torch.tensor(2.0), 0.5).item() in (0.0, 4.0)

    @pytest.mark.parametrize("relu", [False, True])
    @pytest.mark.parametrize("p", [0.1, 0.5, 0.97])
    def test_dropout_keeps_the_right_share_and_scales_it(self, p, relu, rng):
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

    def test_dropout_follows_the_seed_of_torch(self):
        x = torch.ones(64, 64)
        torch.manual_seed(3)
        first = dropout.relu_dropout(x, 0.3)
        other = dropout.relu_dropout(x, 0.3)
        torch.manual_seed(3)
        assert torch.equal(dropout.relu_dropout(x, 0.3), first)
        assert not torch.equal(other, first)
