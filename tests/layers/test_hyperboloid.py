"""Layers of the Lorentz model give points of their hyperboloid, whichever code sets the time."""

import math

import pytest
import torch

from hyptrans.geometry import lorentz
from hyptrans.kernels import backend
from hyptrans.layers.hybonet import (
    RESIDUALS,
    LorentzAttention,
    LorentzFeedForward,
    LorentzLinear,
    LorentzPositions,
)
from hyptrans.layers.hypformer import (
    Curvature,
    HypformerEmbedding,
    HypformerFeedForward,
    HypformerPositions,
)
from hyptrans.layers.hypformer_attention import LinearAttention, SoftmaxAttention
from hyptrans.layers.lorentz import LorentzEmbedding
from tests.geometry.helpers import CURVATURES, assert_on_hyperboloid, points
from tests.layers.conftest import fixed, randomized

pytestmark = pytest.mark.usefixtures("fresh_weights")

POSITIONS = torch.tensor([[0, 1, 2, 3, 4], [0, 0, 0, 1, 2]])
C_IN = 0.7
"""Curvature of the input of a block that changes it."""


def hybonet(kind, *sizes, **options):
    def made(rng, c):
        layer, x = kind(*sizes, c=c, **options), points(rng, 2, 5, 8, c=c)
        if kind is LorentzPositions:
            return layer, x, POSITIONS
        return (layer, x, points(rng, 2, 4, 6, c=c)) if "memory_width" in options else (layer, x)

    return made


def hypformer(kind, *sizes, memory_width=None):
    def made(rng, c):
        chain = {"curvature": fixed(c), "input_curvature": fixed(C_IN), "gain": 1.0}
        x = points(rng, 2, 5, 8, c=C_IN)
        if memory_width:
            chain |= {"memory_width": memory_width, "memory_curvature": fixed(1.5)}
            return kind(*sizes, **chain), x, points(rng, 2, 4, memory_width, c=1.5)
        layer = kind(*sizes, **chain)
        return (layer, x, POSITIONS) if kind is HypformerPositions else (layer, x)

    return made


def embedding(storage):
    return lambda rng, c: (LorentzEmbedding(11, 8, c=c, storage=storage).double(), POSITIONS)


def hypformer_embedding(storage):
    def made(rng, c):
        table = HypformerEmbedding(11, 8, curvature=Curvature(C_IN), storage=storage).double()
        torch.nn.init.constant_(table.curvature.raw, math.log(math.expm1(c)))
        return table, POSITIONS

    return made


LAYERS = {
    "linear": hybonet(LorentzLinear, 8, 6),
    "linear after relu": hybonet(LorentzLinear, 8, 6, relu=True),
    "linear, heads merged": hybonet(LorentzLinear, 8, 6, merged_heads=2),
    "positions": hybonet(LorentzPositions, 8, 9),
    "positions in space": hybonet(LorentzPositions, 8, 9, residual="space"),
    **{
        f"feed-forward, residual {form}": hybonet(LorentzFeedForward, 8, 16, residual=form)
        for form in RESIDUALS
    },
    "attention": hybonet(LorentzAttention, 8, 2),
    "causal attention": hybonet(LorentzAttention, 8, 2, causal=True),
    "attention to a memory": hybonet(LorentzAttention, 8, 2, memory_width=6),
    "embedding in space": embedding("space"),
    "embedding on the manifold": embedding("manifold"),
    "Hypformer positions": hypformer(HypformerPositions, 8, 9),
    "Hypformer feed-forward": hypformer(HypformerFeedForward, 8, 16),
    "linear attention": hypformer(LinearAttention, 8, 2),
    "linear attention to a memory": hypformer(LinearAttention, 8, 2, memory_width=6),
    "softmax attention": hypformer(SoftmaxAttention, 8, 2),
    "softmax attention to a memory": hypformer(SoftmaxAttention, 8, 2, memory_width=6),
    "Hypformer embedding in space": hypformer_embedding("space"),
    "Hypformer embedding on the manifold": hypformer_embedding("manifold"),
}


EMBEDDINGS = [name for name in LAYERS if "embedding" in name]


def layer_and_inputs(name, rng, c):
    """A layer as after some training, in float64; a table keeps its points on their manifold."""
    layer, *inputs = LAYERS[name](rng, c)
    return layer if name in EMBEDDINGS else randomized(layer.double(), rng), inputs


@pytest.mark.parametrize("kernels", ["numba", "eager"])
@pytest.mark.parametrize("name", LAYERS)
def test_layers_give_points_of_their_hyperboloid(name, kernels, rng, monkeypatch):
    monkeypatch.setattr(backend, "CHOSEN", kernels)
    for gradient in (True, False):
        for c in CURVATURES:
            with torch.set_grad_enabled(gradient):
                layer, inputs = layer_and_inputs(name, rng, c)
                assert_on_hyperboloid(layer(*inputs), c)


@pytest.mark.parametrize("name", [n for n in LAYERS if n not in EMBEDDINGS])
def test_autocast_keeps_points_in_float32_on_their_hyperboloid(name, rng):
    layer, inputs = layer_and_inputs(name, rng, 0.5)
    inputs = [x.float() if x.is_floating_point() else x for x in inputs]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = layer.float()(*inputs)
    assert out.dtype == torch.float32
    assert lorentz.violation(out, c=0.5).max() < 2e-6
