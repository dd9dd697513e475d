import pytest
import torch

from hyptrans.geometry import lorentz, poincare
from tests.models.conftest import build, dictionary, task_of


def points_of(model, source, previous):
    """Outputs of all modules that give points: embeddings, positions, attention, feed-forward."""
    found = {}
    parts = ("embed_tokens", "embed_positions", "attention", "feed_forward")
    for name, module in model.named_modules():
        if name.endswith(parts):
            module.register_forward_hook(lambda _, __, out, name=name: found.__setitem__(name, out))
    model(source, None, previous)
    return found


@pytest.mark.parametrize("arch", ["hvt_tiny", "hvt_iwslt_d64"])
def test_a_fresh_model_clamps_under_one_percent_of_its_points(arch):
    torch.manual_seed(0)
    model = build(arch, task_of(dictionary(1000))).train()
    source, previous = torch.randint(4, 1000, (2, 8, 30))
    found = points_of(model, source, previous)
    assert len(found) == 4 + 2 * len(model.encoder.layers) + 3 * len(model.decoder.layers)
    for name, points in found.items():
        radii = points.norm(dim=-1)
        # most lie well away from the origin too: radii that say nothing would be no better
        assert 0.01 < radii.mean() < 0.95, name
        assert (radii >= poincare.max_norm(points.dtype) * (1 - 1e-6)).float().mean() < 0.01, name
        assert lorentz.violation(poincare.to_lorentz(points)).max() < 2e-6, name
