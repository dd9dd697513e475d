"""Trainings with kernels against the same trainings with the plain formulas."""

import pytest
import torch
from fairseq.models import MODEL_REGISTRY
from torch.nn import functional as F

from hyptrans.kernels import backend
from tests.models.conftest import ARCHITECTURES, build, dictionary, task_of

OWN = [arch for arch in ARCHITECTURES if MODEL_REGISTRY[arch].__module__.startswith("hyptrans.")]
"""Architectures of the package; other tests register more."""
UPDATES = 200
SMALL = {
    f"{side}_{name}": value
    for side in ("encoder", "decoder")
    for name, value in (
        ("embed_dim", 32),
        ("ffn_embed_dim", 64),
        ("layers", 2),
        ("attention_heads", 2),
    )
}


def losses_of(arch):
    """Losses of a small model that learns to copy sentences of 20 words."""
    torch.manual_seed(1)
    model = build(arch, task_of(dictionary(20)), dropout=0.0, **SMALL).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, betas=(0.9, 0.98))
    rng = torch.Generator().manual_seed(2)
    losses = []
    for _ in range(UPDATES):
        sentences = torch.randint(4, 24, (16, 8), generator=rng)
        previous = F.pad(sentences[:, :-1], (1, 0), value=2)
        logits, _ = model(sentences, None, previous)
        loss = F.cross_entropy(logits.flatten(0, 1), sentences.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return torch.tensor(losses)


@pytest.mark.slow
# the rate is one at which they learn fast
@pytest.mark.parametrize("arch", OWN)
def test_loss_curve_matches_the_eager_formulas(arch, monkeypatch):
    curves = {}
    for kernels in ("numba", "eager"):
        monkeypatch.setattr(backend, "CHOSEN", kernels)
        curves[kernels] = losses_of(arch)
    numba, eager = curves["numba"], curves["eager"]
    assert eager[-20:].mean() < 0.8 * eager[:20].mean()
    # rounding grows from update to update, so single losses agree at first and means later
    torch.testing.assert_close(numba[:10], eager[:10], rtol=1e-4, atol=1e-4)
    for start in range(0, UPDATES, 20):
        assert numba[start : start + 20].mean() == pytest.approx(
            eager[start : start + 20].mean().item(), rel=0.05, abs=0.02
        )
