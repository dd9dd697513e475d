"""Positions of tokens, counted from 0 and past padding."""

import pytest
import torch

from hyptrans.seq2seq.stacks import token_positions


def test_positions_count_from_0_and_skip_padding():
    padding = torch.tensor([[0, 0, 0, 0], [0, 0, 1, 1], [1, 1, 0, 0]]).bool()
    found = token_positions(padding, 4)
    wanted = torch.tensor([[0, 1, 2, 3], [0, 1, 0, 0], [0, 0, 0, 1]])
    assert torch.equal(found[~padding], wanted[~padding])
    assert found.min() == 0
    with pytest.raises(
        ValueError, match="a sentence has 4 tokens, the model takes 3: raise --max-"
    ):
        token_positions(padding, 3)
