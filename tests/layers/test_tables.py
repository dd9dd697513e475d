"""Tables take memory only when torch has told of them: what counts them may refuse."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from hyptrans.inference.allowance import SPARE_BYTES, within_bytes
from hyptrans.layers.euclidean import AddedPositions, DotProductLogits, ScaledEmbedding
from hyptrans.layers.lorentz import LorentzEmbedding
from hyptrans.support.errors import UserError

ROWS, WIDTH = 3_000, 1 << 14


class Filled(TorchDispatchMode):
    """Collects what writes as many numbers as are refused."""

    def __init__(self):
        super().__init__()
        self.operators = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if isinstance(out, torch.Tensor) and 4 * out.numel() > SPARE_BYTES:
            self.operators.append(func.name())
        return out


@pytest.mark.parametrize(
    "make",
    [
        lambda: LorentzEmbedding(ROWS, WIDTH),
        lambda: LorentzEmbedding(ROWS, WIDTH, storage="manifold"),
        lambda: ScaledEmbedding(ROWS, WIDTH),
        lambda: AddedPositions(WIDTH, ROWS),
        lambda: DotProductLogits(ROWS, WIDTH),
    ],
)
def test_a_table_that_is_refused_is_not_filled(make):
    with Filled() as filled, within_bytes(0), pytest.raises(UserError, match="far larger model"):
        make()
    assert {name.partition(".")[0] for name in filled.operators} <= {
        "aten::empty",
        "aten::detach",
        "aten::alias",
    }


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
