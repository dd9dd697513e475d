"""Fixtures for all tests."""

import pytest
import torch


@pytest.fixture
def rng() -> torch.Generator:
    """A generator with a fixed seed, so that no test depends on another's draws."""
    return torch.Generator().manual_seed(0)
