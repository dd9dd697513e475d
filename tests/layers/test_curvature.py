"""Curvatures that are computed together, for a search or a training step, and no longer."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import hyptrans
import hyptrans.fairseq.model
from hyptrans import layers
from hyptrans.layers import curvature as curvatures_of
from hyptrans.layers.curvature import Curvature, kept_curvatures
from hyptrans.layers.hvt import ScaledResidual
from hyptrans.layers.hybonet import LorentzResidual
from tests.models.conftest import build, dictionary, task_of


def test_a_search_computes_each_curvature_once(monkeypatch):
    model, counts, forward = hyptrans.load("tatoeba-en-de"), [], Curvature.forward
    wanted = model.translate("Nobody told me that.")
    monkeypatch.setattr(Curvature, "forward", lambda self: (counts.append(self), forward(self))[1])
    assert model.translate("Nobody told me that.") == wanted
    curvatures = [part for part in model.model.modules() if isinstance(part, Curvature)]
    assert len(counts) == len(curvatures)
    assert curvatures_of._KEPT.get() is None


@torch.no_grad()
def test_a_curvature_is_computed_anew_afterwards():
    curvature = Curvature(1.0)
    with kept_curvatures(curvature):
        kept = curvature()
        curvature.raw.fill_(3.0)
        assert curvature() == kept
    assert curvature() > kept


class Operators(TorchDispatchMode):
    """Counts operators by name."""

    def __init__(self):
        super().__init__()
        self.counts = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.counts[func.overloadpacket.__name__] += 1
        return func(*args, **(kwargs or {}))


def step(model):
    """Logits and gradients of one training step, and the operators that made them."""
    tokens = torch.tensor([[5, 6, 7, 2], [8, 9, 2, 1]])
    model.zero_grad()
    with Operators() as operators:
        logits, _ = model(tokens, None, tokens)
        logits.sin().sum().backward()
    return [logits, *(p.grad for p in model.parameters())], operators.counts


@pytest.mark.parametrize("arch", ["hypformer", "hybonet_plus"])
def test_a_training_step_computes_curvatures_and_scales_together(arch, monkeypatch):
    torch.manual_seed(1)
    model = build(arch, task_of(dictionary(20)), dropout=0.0).double()
    curvatures = [part for part in model.modules() if isinstance(part, Curvature)]
    with torch.no_grad():
        for place, part in enumerate(curvatures):
            part.raw.add_(0.1 * place)  # else no change of curvature is one
    together, counts = step(model)
    assert curvatures_of._KEPT.get() is None
    monkeypatch.setattr(hyptrans.fairseq.model, "kept_curvatures", lambda model: nullcontext())
    alone, others = step(model)
    assert others["softplus_backward"] - counts["softplus_backward"] >= len(curvatures)
    assert others.total() - counts.total() > 20 * len(curvatures)
    for found, wanted in zip(together, alone, strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-11)


def test_curvatures_that_are_not_learned_stay_numbers():
    model = build("hybonet_plus", task_of(dictionary(20)), hypformer_learn_curvature=False)
    with kept_curvatures(model):
        assert all(p() == 1.0 for p in model.modules() if isinstance(p, Curvature))
    assert step(model)[1]["softplus_backward"] == 0


def test_a_decoder_alone_takes_the_curvature_of_its_memory_too():
    decoder = build("hybonet_plus", task_of(dictionary(20))).decoder
    passage = decoder.layers[0].cross_attention.memory_passage
    alone = passage()
    with kept_curvatures(decoder):
        torch.testing.assert_close(passage(), alone)
        assert passage() is passage()


def test_another_thread_neither_sees_nor_ends_what_is_kept():
    curvature = Curvature(1.0)
    with ThreadPoolExecutor(1) as pool:

        def without_gradient():
            with torch.no_grad(), kept_curvatures(curvature):
                return curvature()

        with kept_curvatures(curvature):
            before = curvature()
            assert isinstance(pool.submit(without_gradient).result(), float)
            assert curvature() is before
            assert before.requires_grad


LAYERS = {
    "linear": lambda c: layers.LorentzLinear(8, 8, c=c),
    "positions": lambda c: layers.LorentzPositions(8, 9, c=c),
    "attention": lambda c: layers.LorentzAttention(8, 2, c=c),
    "feed-forward": lambda c: layers.LorentzFeedForward(8, 16, c=c),
    "residual": lambda c: LorentzResidual(c=c),
    "embedding": lambda c: layers.LorentzEmbedding(9, 8, c=c),
    "embedding on the manifold": lambda c: layers.LorentzEmbedding(9, 8, c=c, storage="manifold"),
    "linear of the ball": lambda c: layers.MobiusLinear(8, 8, c=c),
    "positions of the ball": lambda c: layers.PoincarePositions(8, 9, c=c),
    "attention of the ball": lambda c: layers.PoincareAttention(8, 2, c=c),
    "feed-forward of the ball": lambda c: layers.PoincareFeedForward(8, 16, c=c),
    "residual of the ball": lambda c: ScaledResidual(8, c=c),
    "embedding of the ball": lambda c: layers.PoincareEmbedding(9, 8, c=c),
    "curvature": lambda c: Curvature(c),
}


@pytest.mark.parametrize("c", [-1.0, 0.0, float("inf"), float("nan")])
@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_of_no_negative_curvature_is_refused_at_once(layer, c):
    with pytest.raises(ValueError, match=r"c must be above 0 and finite \(the curvature is -c"):
        LAYERS[layer](c)
