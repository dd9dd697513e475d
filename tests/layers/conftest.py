"""Layers as after some training, their parameters, and what tests of several layers set up."""

import pytest
import torch

from hyptrans.layers import hypformer
from hyptrans.layers.curvature import Curvature
from hyptrans.layers.han import HyperbolicAttention

CHANGES = [(1.0, 1.0), (0.25, 4.0), (3.0, 0.5)]
"""Curvatures of the input and the output of a block."""
NORMED = {"rtol": 1e-11, "atol": 1e-11}


def randomized(layer, rng, scale=0.3):
    """Give every parameter a random value, as after some training."""
    with torch.no_grad():
        for parameter in layer.parameters():
            noise = torch.randn(parameter.shape, generator=rng, dtype=torch.float64)
            parameter.copy_(parameter + scale * noise)
    return layer


def arrays(module):
    """Parameters by name, as NumPy arrays."""
    return {name: p.detach().numpy() for name, p in module.named_parameters()}


def fixed(c):
    """A curvature that is not learned."""
    return Curvature(c, learned=False)


def vectors(rng, *shape):
    """States of a Euclidean layer."""
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


def hyperbolic_attention(rng, width=8, heads=2, **options):
    """HAN's layer in float64 and evaluation; all parameters have moved, also beta and c."""
    layer = randomized(HyperbolicAttention(width, heads, **options).double().eval(), rng)
    with torch.no_grad():
        layer.raw_beta.copy_(torch.tensor([0.3, 1.4])[:heads])
        if layer.c is not None:
            layer.c.copy_(torch.tensor([-0.7, 0.5])[:heads])
    return layer


def hypformer_attention(kind, rng, width=8, heads=2, *, c_in=1.0, c_out=1.0, **options):
    """A layer of Hypformer in float64 at fixed curvatures; see its class for the options.

    ``c_memory``: the curvature of a memory of six numbers.
    """
    chain = {"curvature": fixed(c_out), "input_curvature": fixed(c_in), "gain": 1.0}
    c_memory = options.pop("c_memory", None)
    if c_memory is not None:
        chain |= {"memory_curvature": fixed(c_memory), "memory_width": 6}
    return randomized(kind(width, heads, **chain, **options).double(), rng)


@pytest.fixture
def exact_norm(monkeypatch):
    """Layer norms without their epsilon, which alone sees that a sum stands for a centroid."""
    monkeypatch.setattr(hypformer, "NORM_EPSILON", 0.0)


@pytest.fixture
def fresh_weights():
    """Layers draw their first weights from torch's own generator: the same in every run."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield
