import logging
from argparse import Namespace
from collections.abc import Iterator

import pytest
import torch

import hyptrans_startup

# tests are no program of fairseq, and import parts of it
hyptrans_startup.install()
# tests look into checkpoints by torch's safe loader, too; fairseq stores options as this
torch.serialization.add_safe_globals([Namespace])


@pytest.fixture
def rng() -> torch.Generator:
    """A generator with a fixed seed, so that no test depends on another's draws."""
    return torch.Generator().manual_seed(0)


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """Fail a test that silences logging for all later tests."""
    before = _silenced()
    yield
    after = _silenced()
    logging.disable(before[0])
    logging.getLogger("fairseq").setLevel(before[1])
    assert after == before


def _silenced() -> tuple[int, int]:
    return logging.root.manager.disable, logging.getLogger("fairseq").level
