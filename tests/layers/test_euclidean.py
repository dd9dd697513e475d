"""The ordinary Transformer's parts, one by one; all together are compared with fairseq's."""

import math

import pytest
import torch

from hyptrans.layers.euclidean import (
    DotProductAttention,
    DotProductLogits,
    ScaledEmbedding,
)
from hyptrans.layers.positions import sinusoids


def test_embedding_is_scaled_to_unit_size_and_starts_with_a_zero_row_for_padding():
    torch.manual_seed(0)
    layer = ScaledEmbedding(500, 64, padding_idx=1)
    assert layer.weight.std().item() == pytest.approx(1 / 8, rel=0.02)
    assert layer.weight[1].abs().max() == 0
    out = layer(torch.tensor([[3, 1]]))
    torch.testing.assert_close(out, 8 * layer.weight[None, [3, 1]])
    out.sum().backward()
    assert layer.weight.grad[1].abs().max() == 0
    assert layer.weight.grad[3].tolist() == [8] * 64


@pytest.mark.parametrize("width", [6, 7])
def test_sinusoids_are_sines_then_cosines_of_geometric_rates(width):
    table = sinusoids(5, width)
    assert table.shape == (5, width)
    for position in range(5):
        for i, rate in enumerate([1.0, 0.01, 0.0001]):
            angle = (position + 2) * rate
            assert table[position, i].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert table[position, 3 + i].item() == pytest.approx(math.cos(angle), abs=1e-6)
    assert table[:, 6:].abs().sum() == 0


def test_logits_are_dot_products_with_own_or_shared_vectors(rng):
    torch.manual_seed(0)
    x = torch.randn(2, 64, generator=rng)
    own = DotProductLogits(500, 64)
    assert own.weight.std().item() == pytest.approx(1 / 8, rel=0.02)
    torch.testing.assert_close(own(x), x @ own.weight.T)
    table = ScaledEmbedding(500, 64)
    tied = DotProductLogits(500, 64, table=table)
    assert tied.weight is table.weight
    torch.testing.assert_close(tied(x), x @ table.weight.T)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_attention_trains_in_half_precision_with_its_dropout(dtype):
    layer = DotProductAttention(16, 2, attention_dropout=0.5).to(dtype)
    out = layer(torch.randn(3, 5, 16, dtype=dtype))
    out.float().sum().backward()
    assert out.dtype == dtype
    assert all(parameter.grad.isfinite().all() for parameter in layer.parameters())
