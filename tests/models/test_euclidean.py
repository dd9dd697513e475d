"""The pre-norm twin against the post-norm one with fairseq's two flags."""

from argparse import Namespace

import pytest
import torch
from fairseq.models import ARCH_CONFIG_REGISTRY

from hyptrans.seq2seq.sizes import SIZES
from tests.models.conftest import SMALL, batch, build, dictionary

FLAGS = {"encoder_normalize_before": True, "decoder_normalize_before": True}


def configured(arch, **flags):
    cfg = Namespace(**flags)
    ARCH_CONFIG_REGISTRY[arch](cfg)
    return cfg


@pytest.mark.parametrize("size", SIZES)
def test_the_prenorm_twin_is_configured_as_the_twin_with_two_flags(size):
    assert configured(f"euclidean_prenorm_{size}") == configured(f"euclidean_{size}", **FLAGS)
    assert not configured(f"euclidean_{size}").encoder_normalize_before


def test_it_has_the_same_parameters_losses_and_gradients_to_the_last_digit(sentences):
    made = []
    for arch, flags in (("euclidean_prenorm_tiny", {}), ("euclidean_tiny", FLAGS)):
        torch.manual_seed(0)
        model = build(arch, **SMALL, **flags)
        source, previous = batch(sentences, dictionary())
        loss = model(source, None, previous)[0].logsumexp(-1).sum()
        loss.backward()
        gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
        made.append((model.state_dict(), loss, gradients))
    (ours, loss, gradients), (theirs, expected, expected_gradients) = made
    assert any("decoder.layer_norm" in name for name in ours)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=0)
    assert torch.equal(loss, expected)
    torch.testing.assert_close(gradients, expected_gradients, rtol=0, atol=0)
