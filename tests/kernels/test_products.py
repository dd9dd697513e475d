"""Matrix products in oneDNN against those of float64."""

import pytest
import torch
from torch.nn import functional as F

from hyptrans.kernels import backend, products
from tests.kernels.cases import numbers

pytestmark = pytest.mark.skipif(
    not hasattr(torch.ops.mkldnn, "_linear_pointwise"), reason="a torch without oneDNN"
)


@pytest.fixture
def onednn(monkeypatch):
    """All products in oneDNN, however small and whatever the processor; counts them."""
    calls = []

    def counted(*factors):
        calls.append(factors)
        return original(*factors)

    original = products._onednn
    monkeypatch.setattr(products, "_onednn", counted)
    monkeypatch.setattr(products, "LEAST_PRODUCTS", 0)
    monkeypatch.setattr(products, "LEAST_WEIGHT", 0)
    monkeypatch.setattr(products, "FASTER", True)
    return calls


@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("strided", [True, False])
@pytest.mark.parametrize(("wide", "narrow"), [(65, 24), (24, 65), (16, 16)])
@pytest.mark.parametrize("rows", [(30, 7), ()], ids=["rows", "one vector"])
def test_linear_map_and_its_gradients_match_torch(rows, wide, narrow, strided, biased, rng, onednn):
    x = numbers(rng, *rows, wide)
    x = x.transpose(0, 1) if strided and rows else x
    given = [x, numbers(rng, narrow, wide + 1), numbers(rng, narrow)]
    results = []
    for dtype, linear in ((torch.float32, products.linear), (torch.float64, F.linear)):
        x, wider, bias = (t.to(dtype).requires_grad_() for t in given)
        weight = wider[:, 1:] if strided else wider[:, :-1].contiguous()
        out = linear(x, weight, bias if biased else None)
        inputs = [x, wider, bias] if biased else [x, wider]
        results.append([out, *torch.autograd.grad(out.square().sum(), inputs)])
    assert len(onednn) == 3
    for ours, expected in zip(*results, strict=True):
        atol = 2e-6 * expected.abs().max().item()
        torch.testing.assert_close(ours.double(), expected, rtol=0, atol=atol)


def test_linear_map_computes_only_required_gradients(rng, onednn):
    x, weight = numbers(rng, 5, 4, dtype=torch.float32), numbers(rng, 3, 4, dtype=torch.float32)
    products.linear(x, weight.requires_grad_()).sum().backward()
    assert len(onednn) == 2
    with torch.no_grad():
        assert products.linear(x, weight).grad_fn is None


@pytest.mark.parametrize("harm", ["gone", "other arguments", "other numbers", "none"])
def test_an_operator_that_torch_may_change_is_tried_first(harm, monkeypatch):
    class Library:
        """In place of oneDNN."""

    if harm == "other arguments":
        Library._linear_pointwise = lambda x, weight: x
    if harm == "other numbers":
        Library._linear_pointwise = lambda x, weight, *_: F.linear(x, weight)
    if harm != "none":
        monkeypatch.setattr(torch.ops, "mkldnn", Library)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert products._is_right() == (harm == "none")


@pytest.mark.parametrize("kind", ["eager", "autocast", "float64", "small", "narrow"])
def test_unsupported_inputs_fall_back_to_torch(kind, rng, onednn, monkeypatch):
    x, weight = numbers(rng, 5, 4, dtype=torch.float32), numbers(rng, 3, 4, dtype=torch.float32)
    if kind == "eager":
        monkeypatch.setattr(backend, "CHOSEN", "eager")
    if kind == "float64":
        x, weight = x.double(), weight.double()
    if kind == "small":
        monkeypatch.setattr(products, "LEAST_PRODUCTS", 5 * 4 * 3 + 1)
    if kind == "narrow":
        monkeypatch.setattr(products, "LEAST_WEIGHT", 4 * 3 + 1)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=kind == "autocast"):
        out = products.linear(x, weight)
        expected = F.linear(x, weight)
    assert not onednn
    assert out.dtype == expected.dtype
    assert torch.equal(out, expected)
