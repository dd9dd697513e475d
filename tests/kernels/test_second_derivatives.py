"""Second derivatives of the formulas; kernels refuse them (contract.py)."""

from functools import partial

import mpmath
import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from hyptrans.geometry import klein, poincare
from hyptrans.kernels import backend, products
from hyptrans.seq2seq.stacks import Encoder
from tests.models.conftest import small

WITH_GRADIENTS = {
    "arcosh": (klein.Arcosh.apply, 1.0),
    "squared arcosh": (poincare.squared_arcosh, -1.0),
    "square": (poincare._square, -1.0),
    "polar points": (partial(klein.polar_points, max_radius=6.0), 1.0),
}
"""Functions with a custom gradient, and the sign of their arguments."""
ARCHITECTURES = ["hybonet_tiny", "hybonet_plus_tiny", "han_tiny", "hypformer_tiny", "hvt_tiny"]


def test_linear_maps_in_onednn_have_second_derivatives(rng, monkeypatch):
    monkeypatch.setattr(products, "_onednn", torch.nn.functional.linear)
    given = [torch.randn(*s, generator=rng, dtype=torch.float64) for s in ((5, 4), (3, 4), (3,))]
    assert torch.autograd.gradgradcheck(products._Linear.apply, [x.requires_grad_() for x in given])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("excess", [1e-5, 9e-3, 1.1e-2, 0.3, 50.0])
def test_squared_arcosh_has_second_derivatives_near_and_far(excess, dtype):
    product = torch.tensor(-1 - excess, dtype=dtype, requires_grad=True)
    (first,) = torch.autograd.grad(poincare.squared_arcosh(product), product, create_graph=True)
    (second,) = torch.autograd.grad(first, product)
    with mpmath.workdps(50):
        exact = mpmath.diff(lambda p: mpmath.acosh(-p) ** 2, mpmath.mpf(product.item()), 2)
    assert second.item() == pytest.approx(float(exact), rel=500 * torch.finfo(dtype).eps)


def test_distance_of_equal_points_has_a_finite_second_derivative():
    x = torch.tensor([1.0, 0.5, 2.0], requires_grad=True)
    (first,) = torch.autograd.grad(klein.Arcosh.apply(x).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert second[:2].tolist() == [0, 0]
    assert second[2].item() == pytest.approx(-2 / 3**1.5)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_hessian_vector_products_match_finite_differences(arch, monkeypatch):
    monkeypatch.setattr(backend, "CHOSEN", "eager")
    model = small(arch)
    tokens = torch.tensor([[5, 9, 4, 7, 2], [6, 8, 10, 11, 2]])
    with torch.no_grad():
        x = Encoder.forward(model.encoder, tokens).states[0]
    layer = model.encoder.layers[0]
    names, parameters = zip(*layer.named_parameters(), strict=True)
    rng = torch.Generator().manual_seed(2)
    along = [torch.randn(p.shape, generator=rng, dtype=torch.float64) for p in parameters]
    weights = torch.randn(x.shape, generator=rng, dtype=torch.float64)

    def total(*values):
        named = dict(zip(names, values, strict=True))
        return (torch.func.functional_call(layer, named, (x, None)) * weights).sum()

    def gradient(step):
        moved = [(p + step * v).detach() for p, v in zip(parameters, along, strict=True)]
        return torch.func.grad(total, argnums=tuple(range(len(names))))(*moved)

    with sdpa_kernel(SDPBackend.MATH):
        _, ours = torch.autograd.functional.hvp(total, parameters, tuple(along))
        after, before = gradient(1e-5), gradient(-1e-5)
    scale = max(g.abs().max() for g in ours)
    for got, high, low in zip(ours, after, before, strict=True):
        assert (got - (high - low) / 2e-5).abs().max() <= 1e-6 * scale


@pytest.mark.parametrize("name", WITH_GRADIENTS)
def test_custom_autograd_functions_have_second_derivatives_and_work_in_torch_func(name, rng):
    function, first = WITH_GRADIENTS[name]
    x = first * (1.05 + torch.rand(4, 3, generator=rng, dtype=torch.float64).square())
    wanted = torch.autograd.functional.jacobian(lambda x: function(x).sum(-1), x)
    found = torch.func.jacrev(lambda x: function(x).sum(-1))(x)
    torch.testing.assert_close(found, wanted)
    rows = torch.func.vmap(torch.func.grad(lambda row: function(row).sum()))(x)
    torch.testing.assert_close(rows, wanted.sum(0))
    assert torch.autograd.gradgradcheck(function, [x.requires_grad_()])
