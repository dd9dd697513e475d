import math

import pytest

from probing.text.vocabulary import unseen_share, vocabulary
from tests.probing.helpers.trees import tokenized

KNOWN = vocabulary(["The dog can't sleep.", "An e-mail, 5 cats"])


def sentence(*forms):
    return tokenized(forms, [(form, i, i, True) for i, form in enumerate(forms)])


@pytest.mark.parametrize(
    ("forms", "share"),
    [
        (["the", "DOG", "."], 0.0),
        (["the", "wolf"], 0.5),
        (["e-mail", "mail", "e-book", "!"], 1 / 3),
        (["can't", "can", "5", "55"], 1 / 4),
    ],
)
def test_share_is_of_words_with_a_part_that_the_text_lacks(forms, share):
    assert unseen_share([sentence(*forms)], KNOWN) == pytest.approx(share)


def test_tokens_count_as_written_and_not_as_the_words_in_them():
    one = tokenized(["can", "n't", "sleep"], [("can't", 0, 1, True), ("sleep", 2, 2, True)])
    assert unseen_share([one], KNOWN) == 0
    assert math.isnan(unseen_share([sentence(".", "!")], KNOWN))
