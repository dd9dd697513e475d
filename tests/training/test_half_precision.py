"""Training in half precision beside float32."""

import pytest
import torch

from tests.training.curves import curve

DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16}
APART = {"hybonet": 0.1, "han": 0.02, "hypformer": 0.03, "hybonet_plus": 0.04}
"""Tolerance of the curves in nats: a few times what was measured on a CPU."""


@pytest.fixture(scope="module")
def in_float32():
    """Curves by model and device, made once."""
    return {}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arch", "dtype"), [*((arch, "bfloat16") for arch in APART), ("hybonet", "float16")]
)
def test_half_precision_curves_stay_near_float32(arch, dtype, device, in_float32):
    if arch not in in_float32:
        in_float32[arch] = curve(arch, device)
    found = curve(arch, device, DTYPES[dtype])
    assert found == pytest.approx(in_float32[arch], abs=APART[arch])
    assert found[-1] < 0.6 * found[0]
