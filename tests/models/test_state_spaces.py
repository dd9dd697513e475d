"""Encoders name the space of each of their states."""

import pytest
import torch

from hyptrans.geometry import lorentz
from hyptrans.geometry.space import Space
from tests.models.conftest import small

TOKENS = torch.tensor([[5, 6, 7, 8, 2], [9, 10, 11, 12, 2]])


def states_and_spaces(arch, **options):
    encoder = small(arch, **options).encoder
    with torch.no_grad():
        states = encoder(TOKENS, return_all_hiddens=True)["encoder_states"]
    return states, encoder.state_spaces()


@pytest.mark.parametrize("arch", ["hybonet_tiny", "hypformer_tiny"])
def test_states_lie_on_their_hyperboloid_and_on_no_other(arch):
    for state, space in zip(*states_and_spaces(arch, curvature=0.5), strict=True):
        assert space.kind == "lorentz"
        assert lorentz.violation(state, c=space.c).max() < 1e-9
        assert lorentz.violation(state, c=space.c * 1.01).max() > 1e-6


def test_spaces_match_the_architecture():
    _, spaces = states_and_spaces("hypformer_tiny", curvature=0.5)
    assert len({space.c for space in spaces}) == 3
    states, spaces = states_and_spaces("hvt_tiny", curvature=0.25)
    assert spaces == [Space("poincare", 0.25)] * 3
    assert torch.stack(states).norm(dim=-1).max() < 2
    assert states_and_spaces("han_tiny")[1] == [Space("euclidean")] * 3
