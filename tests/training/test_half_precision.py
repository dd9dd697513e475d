"""Training in half precision beside float32, and attention in half precision beside float64."""

import math

import pytest
import torch

from hyptrans.geometry import lorentz
from hyptrans.layers.lorentz.mix import lorentz_mix
from tests.training.curves import curve

DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16}
APART = {"hybonet": 0.1, "han": 0.02, "hypformer": 0.03, "hybonet_plus": 0.04}
"""Nats by which curves may come apart: a few times what was measured on a processor."""
WAYS = [(name, dtype, "float32") for name in APART for dtype in DTYPES]
WAYS += [(name, dtype, "half") for name in ("hybonet", "hybonet_plus") for dtype in DTYPES]


@pytest.fixture(scope="module")
def in_float32():
    """Curves by model and device, made once."""
    return {}


@pytest.mark.slow
@pytest.mark.parametrize(("arch", "dtype", "attention"), WAYS)
def test_curves_stay_near_those_of_float32(arch, dtype, attention, device, in_float32):
    if arch not in in_float32:
        in_float32[arch] = curve(arch, device)
    fields = {} if attention == "float32" else {"attention_precision": "half"}
    found = curve(arch, device, DTYPES[dtype], **fields)
    assert found == pytest.approx(in_float32[arch], abs=APART[arch])
    assert found[-1] < 0.6 * found[0]


def close(rng, *shape, time):
    """Space parts of about 0.3 of one another, around one of this time for every head."""
    place = torch.randn(*shape[:-2], 1, shape[-1], generator=rng, dtype=torch.float64)
    noise = torch.randn(*shape, generator=rng, dtype=torch.float64) / shape[-1] ** 0.5
    return place / place.norm(dim=-1, keepdim=True) * math.sqrt(time**2 - 1) + 0.2 * noise


def mixed(spaces, half=None):
    """Points that attention gives, and the gradient of their random sum by the queries."""
    leaves = [space.clone().requires_grad_() for space in spaces]
    query, key, value = (lorentz.lift(leaf) for leaf in leaves)
    flipped = lorentz.flip_time(query) / 4
    out = lorentz_mix(flipped, key, value, c=1.0, allowed=None, is_causal=False, half=half)
    rng = torch.Generator().manual_seed(2)
    (out * torch.randn(out.shape, generator=rng, dtype=torch.float64).to(out)).sum().backward()
    return out.detach().double(), leaves[0].grad.double()


@pytest.mark.slow
@pytest.mark.parametrize("time", [1.5, 3.0, 6.0, 11.0])
@pytest.mark.parametrize(("dtype", "digits"), [(torch.bfloat16, 2**-8), (torch.float16, 2**-11)])
def test_attention_in_half_precision_keeps_its_digits(dtype, digits, time, device):
    rng = torch.Generator().manual_seed(1)
    shape = 4, 4, 64, 15
    key, value = (close(rng, *shape, time=time) for _ in range(2))
    near = key + torch.randn(shape, generator=rng, dtype=torch.float64) / 4
    spaces = [part.to(device) for part in (near, key, value)]
    found = mixed([space.float() for space in spaces], dtype)
    points, gradient = (
        ((got - wanted).norm() / wanted.norm()).item()
        for got, wanted in zip(found, mixed(spaces), strict=True)
    )
    # float32's own share grows with the square of the time
    assert points < 0.1 * digits + 2**-23 * time**2
    assert gradient < 4 * time * digits
