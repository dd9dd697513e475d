"""What tests of several layers set up."""

import pytest
import torch

from hyptrans.layers import hypformer


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
