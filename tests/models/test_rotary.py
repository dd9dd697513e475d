"""Rotary positions: the formula against complex numbers, and what every door makes of it."""

import numpy as np
import pytest
import torch

from hyptrans.geometry import lorentz
from hyptrans.layers.positions import rotate
from tests.models.conftest import batch, dictionary, small

SYMBOLS = dictionary()
EXACT = {"rtol": 0, "atol": 1e-9}
ROTARY = [f"{name}_tiny" for name in ("hybonet", "hybonet_plus", "sphere", "euclidean_prenorm")]
ROTARY += ["euclidean_postnorm_tiny", "euclidean_tiny"]


def softmax(scores):
    found = np.exp(scores - scores.max(-1, keepdims=True))
    return found / found.sum(-1, keepdims=True)


def turned(x, positions, fixed):
    """Multiply complex numbers, whose parts are coordinates, by ``exp(i m theta)``."""
    half = (x.shape[-1] - fixed) // 2
    one, other = x[..., fixed : fixed + half], x[..., fixed + half : fixed + 2 * half]
    theta = np.array([10_000 ** (-i / half) for i in range(half)])
    z = (one + 1j * other) * np.exp(1j * np.multiply.outer(positions, theta))
    found = x.copy()
    found[..., fixed : fixed + half], found[..., fixed + half : fixed + 2 * half] = z.real, z.imag
    return found


@pytest.mark.parametrize("fixed", [0, 1])
@pytest.mark.parametrize("width", [4, 7, 8])
def test_rotation_is_a_product_of_complex_numbers(width, fixed, rng):
    x = torch.randn(2, 3, 50, width, generator=rng, dtype=torch.float64)
    at = torch.arange(900, 950)
    y = x.flip(0)
    for found, own in zip(rotate(x, y, at, fixed=fixed), (x, y), strict=True):
        wanted = turned(own.numpy(), at.numpy(), fixed)
        np.testing.assert_allclose(found.numpy(), wanted, atol=1e-12)
    _, rounded = rotate(x.bfloat16(), y.bfloat16(), at, fixed=fixed)
    assert rounded.dtype == torch.bfloat16
    torch.testing.assert_close(rounded.double(), torch.from_numpy(wanted), rtol=0, atol=0.05)


def test_rotated_points_stay_on_the_hyperboloid_and_keep_relative_products(rng):
    x, y = lorentz.lift(torch.randn(2, 30, 8, generator=rng, dtype=torch.float64), c=0.5)
    at = torch.arange(30)
    q, _ = rotate(x, y, at, fixed=1)
    torch.testing.assert_close(lorentz.inner(q, q), torch.full((30,), -2.0, dtype=q.dtype))
    assert torch.equal(q[:, 0], x[:, 0])
    assert not torch.allclose(q[1:], x[1:])

    def product(later):
        return lorentz.inner(
            rotate(x, x, at + later + 7, fixed=1)[0], rotate(y, y.flip(0), at + later, fixed=1)[1]
        )

    later, wanted = product(770), product(0)
    torch.testing.assert_close(later, wanted)


@pytest.mark.parametrize("arch", ROTARY)
def test_self_attention_alone_weighs_rotated_queries_and_keys(arch, rng):
    model = small(arch, rotary_positions=True)
    x = model.encoder(torch.tensor([[5, 6, 7, 5, 6, 2]]))["encoder_out"][0].transpose(0, 1)
    fixed = 1 if arch.startswith("hybonet") else 0
    # other queries contain their factors
    scale = 8**-0.5 if "euclidean" in arch else 1.0
    for side in (model.encoder, model.decoder):
        layer = side.layers[0].attention
        q, k, _ = (one.detach().numpy() for one in layer.map_heads("qkv", x))
        scores = turned(q, np.arange(6), fixed) @ turned(k, np.arange(6), fixed).swapaxes(-1, -2)
        if side is model.decoder:
            scores[..., ~np.tri(6, dtype=bool)] = -np.inf
        np.testing.assert_allclose(layer.look(x).detach(), softmax(scores * scale), atol=1e-9)
    layer = model.decoder.layers[0].cross_attention
    q, (k, _) = layer.query(x), layer.keys_and_values(x)
    scores = (q @ k.transpose(-1, -2)).detach().numpy()
    np.testing.assert_allclose(layer.look(x, x).detach(), softmax(scores * scale), atol=1e-9)
    # no table has a row for each position
    tables = [p for p in model.parameters() if p.dim() == 2 and len(p) == 64]
    assert not tables
    assert not [name for name, _ in model.named_buffers() if "embed_positions" in name]


@pytest.mark.parametrize("arch", ROTARY)
def test_order_matters_and_places_do_not(arch, sentences):
    model = small(arch, rotary_positions=True)
    source, previous = batch(sentences, SYMBOLS)
    pad = torch.full((len(source), 5), SYMBOLS.pad())
    wanted = model(source, None, previous)[0]
    shifted = model(torch.cat([pad, source], 1), None, torch.cat([pad, previous], 1))[0][:, 5:]
    real = previous != SYMBOLS.pad()
    torch.testing.assert_close(shifted[real], wanted[real], **EXACT)
    swapped = source.clone()
    swapped[:, -3:-1] = source[:, -3:-1].flip(1)
    changed = (swapped != source).any(1)
    other = model(swapped, None, previous)[0]
    assert (other - wanted)[changed].abs().amax((1, 2)).min() > 1e-6
