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


LAYERS = [
    *((kind, (8, 8)) for kind in (layers.LorentzLinear, layers.MobiusLinear)),
    *((kind, (8, 9)) for kind in (layers.LorentzPositions, layers.PoincarePositions)),
    *((kind, (8, 2)) for kind in (layers.LorentzAttention, layers.PoincareAttention)),
    *((kind, (8, 16)) for kind in (layers.LorentzFeedForward, layers.PoincareFeedForward)),
    *((kind, (9, 8)) for kind in (layers.LorentzEmbedding, layers.PoincareEmbedding)),
    *((LorentzResidual, ()), (ScaledResidual, (8,)), (Curvature, ())),
]


@pytest.mark.parametrize("c", [-1.0, 0.0, float("inf"), float("nan")])
@pytest.mark.parametrize(("kind", "sizes"), LAYERS)
def test_a_layer_without_negative_curvature_is_refused(kind, sizes, c):
    with pytest.raises(ValueError, match=r"c must be above 0 and finite \(the curvature is -c"):
        kind(*sizes, c=c)
