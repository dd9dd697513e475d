"""Layers refuse impossible arguments and name them."""

import pytest

from hyptrans.layers import (
    HTC,
    HyperbolicAttention,
    LorentzLinear,
    LorentzPositions,
    PoincareAttention,
    SoftmaxAttention,
)
from tests.layers.conftest import fixed

CHAIN = {"curvature": fixed(1.0), "input_curvature": fixed(1.0), "gain": 1.0}


@pytest.mark.parametrize(
    ("kind", "sizes", "options", "message"),
    [
        (LorentzLinear, (10, 8), {"merged_heads": 3}, "in_width=10 is not divisible by 3"),
        (LorentzLinear, (8, 10), {"split_heads": 3}, "out_width=10 is not divisible by 3"),
        (LorentzLinear, (8, 4), {"split_heads": 4}, "points of 1 coordinates in 4 head"),
        (LorentzLinear, (8, 8), {"projections": 2}, "projections=2 needs split_heads"),
        (LorentzLinear, (8, 8), {"residual": "none"}, "residual must be one of full"),
        (
            LorentzPositions,
            (8, 9),
            {"residual": "logit"},
            "as 'full' or 'space', got 'logit'",
        ),
        (HyperbolicAttention, (8, 2), {"coordinates": "klein"}, "coordinates must be one of polar"),
        (HyperbolicAttention, (8, 2), {"weights": "relu"}, "weights must be one of softmax"),
        (HyperbolicAttention, (8, 2), {"max_radius": 0.0}, "at most 20.0.*got 0.0"),
        (HyperbolicAttention, (8, 2), {"max_radius": 21.0}, "at most 20.0.*got 21.0"),
        (PoincareAttention, (8, 2), {"aggregation": "sum"}, "midpoint, tangent, got 'sum'"),
        (HTC, (0, 4), {"gain": 1.0}, "at least one space coordinate, got in_space=0"),
        (SoftmaxAttention, (8, 8), CHAIN, "at least one space coordinate, got in_space=7"),
    ],
)
def test_impossible_arguments_are_refused(kind, sizes, options, message):
    with pytest.raises(ValueError, match=message):
        kind(*sizes, **options)
