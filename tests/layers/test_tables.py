"""Tables start as wide as they should."""

import pytest

from hyptrans.layers.euclidean import AddedPositions, DotProductLogits, ScaledEmbedding
from hyptrans.layers.lorentz import LorentzEmbedding


def test_tables_start_as_wide_as_they_are_told_to():
    tables = [
        LorentzEmbedding(400, 64).weight,
        ScaledEmbedding(400, 64).weight,
        AddedPositions(64, 400).vectors,
        DotProductLogits(400, 64).weight,
    ]
    for table in tables:
        assert table.std().item() == pytest.approx(64**-0.5, rel=0.03)
        assert abs(table.mean().item()) < 0.01
