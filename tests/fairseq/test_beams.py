import pytest
import torch

from hyptrans.fairseq.model import beams_of, sentence_rows


@pytest.mark.parametrize(
    ("sentences", "beams"),
    [
        ([0, 0, 0, 1, 1, 1], 3),
        ([0, 1, 2], 1),
        ([0, 0, 1], 1),
        ([7], 1),
        ([7, 7, 7, 7], 4),
        # two neighbors that happen to be the same sentence
        ([0, 0, 1, 1, 1, 1, 2, 2], 2),
        ([0, 0, 0, 1, 1], 1),
    ],
)
def test_beams_are_the_rows_that_repeat(sentences, beams):
    memory = torch.tensor(sentences, dtype=torch.float32)[:, None, None] + torch.rand(1, 3, 4)
    assert beams_of(memory) == beams


def test_nan_rows_do_not_count_as_repetitions():
    assert beams_of(torch.full((4, 2, 2), torch.nan)) == 1


@pytest.mark.parametrize(
    ("order", "beams", "rows"),
    [
        ([1, 0, 3, 3], 2, [0, 1]),
        ([3, 2], 2, [1]),
        ([0, 2, 1, 3], 2, [0, 1, 0, 1]),
        ([0, 1, 2], 2, [0, 0, 1]),
        ([2, 0], 1, [2, 0]),
    ],
)
def test_sentence_rows_follow_a_reordering(order, beams, rows):
    assert sentence_rows(torch.tensor(order), beams).tolist() == rows
