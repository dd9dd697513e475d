"""Curvatures that a search asks for are computed once, and no longer than it lasts."""

import torch

import hyptrans
from hyptrans.layers.hypformer import Curvature, kept_curvatures


def test_a_search_computes_each_curvature_once(monkeypatch):
    model, counts, forward = hyptrans.load("tatoeba-en-de"), [], Curvature.forward
    wanted = model.translate("Nobody told me that.")
    monkeypatch.setattr(Curvature, "forward", lambda self: (counts.append(self), forward(self))[1])
    assert model.translate("Nobody told me that.") == wanted
    curvatures = [part for part in model.model.modules() if isinstance(part, Curvature)]
    assert len(counts) == len(curvatures)
    assert all(part.kept is None for part in curvatures)


@torch.no_grad()
def test_a_curvature_is_computed_anew_afterwards():
    curvature = Curvature(1.0)
    with kept_curvatures(curvature):
        kept = curvature()
        curvature.raw.fill_(3.0)
        assert curvature() == kept
    assert curvature() > kept
