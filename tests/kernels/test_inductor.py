"""Formulas through torch.compile: chosen by name, checked at first use, right for each operator."""

import pytest
import torch

from hyptrans.geometry import lorentz
from hyptrans.kernels import hyperboloid, operator
from hyptrans.kernels.check import results_of
from hyptrans.kernels.hyperboloid import LIFT
from hyptrans.kernels.operator import REGISTRY
from tests.kernels.contract import assert_agree, drawn


@pytest.fixture(autouse=True)
def _chosen(monkeypatch, tmp_path):
    monkeypatch.setenv("HYPTRANS_KERNELS", "inductor")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    trusted = operator._trusted
    trusted.cache_clear()
    yield
    trusted.cache_clear()


def test_formulas_are_compiled_for_any_shape_and_checked(monkeypatch):
    asked = []

    def compiled(function, *, dynamic):
        assert dynamic
        return lambda *operands: asked.append(function) or function(*operands)

    monkeypatch.setattr(torch, "compile", compiled)
    for one in REGISTRY.values():
        monkeypatch.setitem(vars(one), "compiled", torch.compile(one.plain, dynamic=True))
    space = torch.randn(4, 5)
    torch.testing.assert_close(hyperboloid.lift(space, c=0.5), lorentz.lift(space, c=0.5))
    # its family's cases at the first use, then itself
    assert asked.count(LIFT.plain) == 3
    assert asked.count(hyperboloid.NORMALIZE.plain) == 1


@pytest.mark.parametrize("harm", ["is off by", "ends with RuntimeError: no compiler"])
def test_what_is_compiled_wrong_is_left_to_eager_with_one_sentence(harm, monkeypatch):
    def wrong(*operands):
        if harm != "is off by":
            raise RuntimeError("no compiler")
        return LIFT.plain(*operands) * 2

    monkeypatch.setitem(vars(LIFT), "compiled", wrong)
    space = torch.randn(4, 5)
    with pytest.warns(UserWarning, match=f"inductor kernels of hyperboloid .*lift {harm}"):
        lifted = hyperboloid.lift(space)
    torch.testing.assert_close(lifted, lorentz.lift(space))


def test_kernels_of_triton_go_before(monkeypatch):
    on_cuda = torch.ones(2, 3).as_subclass(type("OnCuda", (torch.Tensor,), {"is_cuda": True}))
    monkeypatch.setattr(operator, "_loaded", lambda _: True)
    monkeypatch.setattr(operator, "_trusted", lambda *_: True)
    assert LIFT.backend(on_cuda) == "triton"
    assert REGISTRY["weights"].backend(on_cuda) == "inductor"
    # not all formulas are of half precision
    assert REGISTRY["weights"].backend(on_cuda.half()) == "eager"


@pytest.mark.slow
@pytest.mark.parametrize("one", REGISTRY.values(), ids=lambda one: one.name)
def test_an_operator_compiled_is_its_formula(one):
    torch.compiler.reset()
    for shape in ((5, 8), (3, 7)):
        _, operands = next(iter(one.cases(drawn(torch.float32, shape=shape))))
        results = [
            results_of(function, operands, one.differentiable)
            for function in (one.compiled, one.plain)
        ]
        assert_agree(*results, 2e-5)
