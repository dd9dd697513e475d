"""What kernels of any backend must do, as tests; a backend's test class inherits them."""

import pytest
import torch
from torch.autograd.function import BackwardCFunction

from hyptrans.geometry import lorentz
from hyptrans.kernels import operators
from hyptrans.kernels.backend import chosen
from tests.geometry.helpers import CURVATURES
from tests.kernels import cpu_operators
from tests.kernels.cpu_operators import numbers

SHAPES = [(1,), (3, 5), (2, 3, 0), (700,), (2, 130), (5000,)]
TOLERANCE = {torch.float64: 1e-12, torch.float32: 2e-5}


def points_of(rng, shape, dtype, *, heads=(1, 1), c=0.5, residual=None, query=False):
    """Inputs of :func:`operators.points` and the call."""
    z = numbers(rng, *shape, *heads, 6, dtype=dtype).requires_grad_()
    inputs = [z, numbers(rng, heads[0], dtype=dtype).requires_grad_()]
    options = {"c": c, "residual_time": residual != "space"}
    if residual:
        options["residual"] = numbers(rng, *shape, 6, dtype=dtype).requires_grad_()
        inputs.append(options["residual"])
    if query:
        options["query_factor"] = torch.tensor(0.7, dtype=dtype, requires_grad=True)
        inputs.append(options["query_factor"])
    return inputs, lambda: operators.points(inputs[0], inputs[1], **options)


def normalized_of(rng, shape, dtype, *, c=0.5):
    space = numbers(rng, *shape, 5)
    # nearer to the light cone float32 has too few digits of <v, v> left to compare gradients by
    minus_product = 0.5 + numbers(rng, *shape, 1).square()
    time = (space.square().sum(-1, keepdim=True) + minus_product).sqrt()
    v = torch.cat([time, space], dim=-1).to(dtype).requires_grad_()
    c = torch.tensor(c, dtype=dtype, requires_grad=True)
    return [v, c], lambda: (operators.normalize(v, c=c),)


def lifted_of(rng, shape, dtype, *, c=0.5):
    space = numbers(rng, *shape, 5, dtype=dtype).requires_grad_()
    c = torch.tensor(c, dtype=dtype, requires_grad=True)
    return [space, c], lambda: (operators.lift(space, c=c),)


OPERATORS = {
    "points": points_of,
    "points of three projections": lambda *a, **k: points_of(*a, heads=(3, 2), **k),
    "points with queries": lambda *a, **k: points_of(*a, heads=(3, 2), query=True, **k),
    "points with residual": lambda *a, **k: points_of(*a, residual="full", **k),
    "points with space residual": lambda *a, **k: points_of(*a, residual="space", **k),
    "normalize": normalized_of,
    "lift": lifted_of,
    **cpu_operators.OPERATORS,
}


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


class KernelContract:
    """``kernels`` names the backend, ``fast_gradcheck`` says that it takes its time."""

    kernels: str
    fast_gradcheck = False
    tolerance = TOLERANCE

    @pytest.fixture(autouse=True)
    def _chosen(self, monkeypatch, request):
        parameters = request.node.callspec.params if hasattr(request.node, "callspec") else {}
        if self.kernels != "numba" and parameters.get("name") in cpu_operators.OPERATORS:
            pytest.skip("its kernel is for the CPU alone")
        monkeypatch.setenv("HYPTRANS_KERNELS", self.kernels)
        assert chosen(torch.ones(1)) == self.kernels

    @pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
    @pytest.mark.parametrize("shape", SHAPES, ids=str)
    @pytest.mark.parametrize("name", OPERATORS)
    def test_kernels_agree_with_the_eager_operator(self, name, shape, dtype, rng, monkeypatch):
        kernel, eager = both(monkeypatch, *OPERATORS[name](rng, shape, dtype), self.kernels)
        assert_agree(kernel, eager, self.tolerance[dtype])

    @pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
    @pytest.mark.parametrize("width", [2, 16, 33, 500, 2500])
    @pytest.mark.parametrize("name", ["queries", "residual", "normalize", "lift"])
    def test_rows_of_any_width(self, name, width, dtype, rng, monkeypatch):
        kernel, eager = both(monkeypatch, *calls_of(rng, 9, width, dtype)[name], self.kernels)
        assert_agree(kernel, eager, self.tolerance[dtype] * 3)

    @pytest.mark.parametrize("c", CURVATURES)
    @pytest.mark.parametrize("name", OPERATORS)
    def test_gradients_agree_with_finite_differences(self, name, c, rng):
        inputs, call = OPERATORS[name](rng, (2, 3), torch.float64, c=c)
        assert torch.autograd.gradcheck(lambda *_: call(), inputs, fast_mode=self.fast_gradcheck)

    @pytest.mark.parametrize("size", [1e-12, 1e-4, 1e2, 1e4])
    @pytest.mark.parametrize("name", OPERATORS)
    def test_extreme_sizes(self, name, size, rng, monkeypatch):
        if (name, size) in cpu_operators.NOTHING_TO_COMPARE:
            pytest.skip("float32 has nothing left to compare")
        inputs, call = OPERATORS[name](rng, (40,), torch.float32)
        with torch.no_grad():
            inputs[0] *= size
        kernel, eager = both(monkeypatch, inputs, call, self.kernels)
        for ours, expected in zip(kernel, eager, strict=True):
            assert torch.isfinite(ours).all()
            scale = expected.abs().max().clamp_min(1e-30).item()
            torch.testing.assert_close(ours, expected, rtol=0, atol=3e-4 * scale)

    @pytest.mark.parametrize("radius", [1.0, 5.0, 9.9])
    def test_results_lie_on_the_hyperboloid(self, radius, rng):
        space = numbers(rng, 400, 15, dtype=torch.float32)
        space *= torch.sinh(torch.tensor(radius)) / space.norm(dim=-1, keepdim=True)
        lifted = operators.lift(space)
        assert lorentz.violation(lifted).max() < 2e-6
        assert lorentz.violation(operators.normalize(lifted * 3)).max() < 2e-6
        z = torch.cat([numbers(rng, 400, 1, dtype=torch.float32), space], dim=-1)
        (made,) = operators.points(z[:, None, None], torch.tensor([radius]), c=1.0)
        assert lorentz.violation(made).max() < 2e-6

    def test_a_space_like_sum_is_scaled_as_by_the_eager_operator(self, rng, monkeypatch):
        v = numbers(rng, 50, 6, dtype=torch.float32)
        v[:, 0] = v[:, 1:].norm(dim=-1) * 0.999
        v.requires_grad_()
        kernel, eager = both(monkeypatch, [v], lambda: (operators.normalize(v),), self.kernels)
        assert torch.isfinite(kernel[0]).all()
        for ours, expected in zip(kernel, eager, strict=True):
            size = expected.abs().max().item()
            torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-4 * size)

    @pytest.mark.parametrize("column", [0, 3])
    @pytest.mark.parametrize("name", OPERATORS)
    def test_nan_is_not_hidden(self, name, column, rng):
        inputs, call = OPERATORS[name](rng, (4,), torch.float32)
        with torch.no_grad():
            inputs[0].view(4, -1)[2, column] = torch.nan
        out = torch.cat([o.reshape(4, -1) for o in call()], dim=-1)
        assert out[2].isnan().any()
        assert torch.isfinite(out[[0, 1, 3]]).all()

    @pytest.mark.parametrize("name", OPERATORS)
    def test_inputs_and_gradients_may_lie_anyhow_in_memory(self, name, rng):
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
            grad = numbers(rng, *out.shape)
            found = [
                torch.autograd.grad(out, inputs, given, retain_graph=True, allow_unused=True)
                for given in (grad, grad.transpose(0, 1).contiguous().transpose(0, 1))
            ]
            for ours, expected in zip(*found, strict=True):
                if expected is not None:
                    torch.testing.assert_close(ours, expected, rtol=0, atol=0)

    @pytest.mark.parametrize("odd", ["z", "log_scale", "residual", "query_factor"])
    def test_inputs_of_two_dtypes_meet_in_the_longer_one(self, odd, rng, monkeypatch):
        given = {
            "z": numbers(rng, 300, 1, 1, 8),
            "log_scale": numbers(rng, 1),
            "residual": numbers(rng, 300, 8),
            "query_factor": torch.tensor(0.7, dtype=torch.float64),
        }
        expected = operators.points(**given, c=0.5)
        given = {n: x if n == odd else x.float() for n, x in given.items()}
        inputs = [x.requires_grad_() for x in given.values()]
        kernel, eager = both(
            monkeypatch, inputs, lambda: operators.points(**given, c=0.5), self.kernels
        )
        assert kernel[0].dtype == torch.float64
        assert_agree(kernel, eager, 1e-6)
        torch.testing.assert_close(kernel[0], expected[0], rtol=0, atol=1e-5)

    def test_log_scales_may_be_expanded_or_apart(self, rng, monkeypatch):
        z = numbers(rng, 300, 3, 4, 8).requires_grad_()
        for scale in (numbers(rng, 1).expand(3), numbers(rng, 6)[::2]):
            scale.requires_grad_()
            results = both(
                monkeypatch, [z, scale], lambda s=scale: operators.points(z, s, c=1.0), self.kernels
            )
            assert_agree(*results, 1e-12)

    def test_a_log_scale_too_few_is_refused(self, rng):
        with pytest.raises(ValueError, match=r"3 projections need as many log scales, got \(1,\)"):
            operators.points(numbers(rng, 5, 3, 4, 8), numbers(rng, 1), c=1.0)

    def test_one_residual_for_all_sentences(self, rng, monkeypatch):
        z, scale = numbers(rng, 2, 300, 1, 1, 8).requires_grad_(), numbers(rng, 1).requires_grad_()
        residual = numbers(rng, 1, 300, 8).requires_grad_()
        results = both(
            monkeypatch,
            [z, scale, residual],
            lambda: operators.points(z, scale, c=1.0, residual=residual),
            self.kernels,
        )
        assert_agree(*results, 1e-12)

    def test_more_projections_than_a_kernel_takes_are_left_to_the_formula(self, rng):
        z, scale = numbers(rng, 20, 7, 2, 8).requires_grad_(), numbers(rng, 7).requires_grad_()
        together = operators.points(z, scale, c=1.0)
        assert not _by_a_kernel(together)
        for i, points in enumerate(together):
            one = slice(i, i + 1)
            (alone,) = operators.points(z[..., one, :, :], scale[one], c=1.0)
            assert _by_a_kernel([alone])
            torch.testing.assert_close(points, alone, rtol=1e-12, atol=1e-12)

    def test_dropout_of_a_single_number(self):
        assert operators.relu_dropout(torch.tensor(2.0), 0.5).item() in (0.0, 4.0)

    @pytest.mark.parametrize("name", OPERATORS)
    def test_a_second_run_does_not_differ_in_a_bit(self, name, rng):
        inputs, call = OPERATORS[name](rng, (3000,), torch.float32)
        first, second = with_gradients(inputs, call), with_gradients(inputs, call)
        assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))

    @pytest.mark.parametrize("relu", [False, True])
    @pytest.mark.parametrize("p", [0.1, 0.5, 0.97])
    def test_dropout_keeps_the_right_share_and_scales_it(self, p, relu, rng):
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

    def test_dropout_follows_the_seed_of_torch(self):
        x = torch.ones(64, 64)
        torch.manual_seed(3)
        first = operators.relu_dropout(x, 0.3)
        other = operators.relu_dropout(x, 0.3)
        torch.manual_seed(3)
        assert torch.equal(operators.relu_dropout(x, 0.3), first)
        assert not torch.equal(other, first)
