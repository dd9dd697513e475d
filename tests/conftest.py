"""Fixtures for all tests."""

import sys

import pytest
import torch

from hyptrans_startup import StartupFinder

# pytest's assertion rewriter stands first and takes every file of a package that has a pytest
# plug-in, hydra's too: the start-up fixes must come before it
sys.meta_path.sort(key=lambda finder: not isinstance(finder, StartupFinder))


@pytest.fixture
def rng() -> torch.Generator:
    """A generator with a fixed seed, so that no test depends on another's draws."""
    return torch.Generator().manual_seed(0)
