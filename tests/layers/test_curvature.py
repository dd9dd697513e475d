"""Curvatures are computed together and kept only for one search or training step."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from hyptrans import layers
from hyptrans.layers.curvature import Curvature, kept_curvatures
from hyptrans.layers.hvt import ScaledResidual
from hyptrans.layers.hybonet import LorentzResidual
from tests.models.conftest import build, dictionary, task_of


@torch.no_grad()
def test_curvature_is_recomputed_after_kept_curvatures_ends():
    curvature = Curvature(1.0)
    with kept_curvatures(curvature):
        kept = curvature()
        curvature.raw.fill_(3.0)
        assert curvature() == kept
    assert curvature() > kept


def test_a_standalone_decoder_also_takes_its_memorys_curvature():
    decoder = build("hybonet_plus", task_of(dictionary(20))).decoder
    passage = decoder.layers[0].cross_attention.memory_passage
    alone = passage()
    with kept_curvatures(decoder):
        torch.testing.assert_close(passage(), alone)
        assert passage() is passage()


def test_curvature_cache_is_local_to_its_thread():
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
def test_a_layer_without_negative_curvature_is_refused(layer, c):
    with pytest.raises(ValueError, match=r"c must be above 0 and finite \(the curvature is -c"):
        LAYERS[layer](c)
