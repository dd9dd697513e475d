"""The ordinary Transformer's parts, one by one; all together are compared with fairseq's."""

import pytest
import torch

from hyptrans.layers.euclidean import DotProductAttention


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_attention_trains_in_half_precision_with_its_dropout(dtype):
    layer = DotProductAttention(16, 2, attention_dropout=0.5).to(dtype)
    out = layer(torch.randn(3, 5, 16, dtype=dtype))
    out.float().sum().backward()
    assert out.dtype == dtype
    assert all(parameter.grad.isfinite().all() for parameter in layer.parameters())
