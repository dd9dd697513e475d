"""Einstein's midpoints where nothing has weight."""

import torch

from hyptrans.geometry import klein, lorentz


def test_midpoint_without_weight_is_the_origin_with_finite_gradient(rng):
    value = lorentz.lift(torch.randn(5, 3, generator=rng, dtype=torch.float64))
    # the second query sees nothing
    weights = torch.tensor([[0.2, 0.1, 0.0, 0.5, 0.2], [0.0] * 5], dtype=torch.float64)
    weights.requires_grad_()
    found = klein.midpoint(weights, value)
    expected = (weights[0] @ value[:, 1:]) / (weights[0] @ value[:, 0])
    torch.testing.assert_close(found[0], expected)
    assert found[1].tolist() == [0, 0, 0]
    found.sum().backward()
    assert weights.grad.isfinite().all()
