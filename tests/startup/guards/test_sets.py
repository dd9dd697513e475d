"""Numbers of a binarized text are words of its dictionary, and its index is what it seems."""

import random
import struct

import pytest

from hyptrans_startup.errors import UserError
from tests.hostile import sets


@pytest.fixture
def written(tmp_path):
    return sets.written(tmp_path / "s", random.Random(1))


def test_ordinary_set_is_read(written):
    sets.read(written)


@pytest.mark.parametrize("sentence", [1, 3])
@pytest.mark.parametrize("position", [-1, 2, 10**9])
def test_position_inside_the_index_is_checked(sentence, position, written):
    index = written.with_suffix(".idx")
    place = sets.HEAD + 4 * sets.sentences(index) + 8 * sentence
    sets.at(index, place, struct.pack("<q", position))
    with pytest.raises(UserError, match="points inside or outside of its sentences"):
        sets.read(written)


@pytest.mark.parametrize(("number", "held"), [(19, True), (20, False), (65535, False)])
def test_number_of_no_word_is_named_wherever_it_is(number, held, written):
    sets.at(written.with_suffix(".bin"), 2, struct.pack("<H", number))
    if held:
        sets.read(written)
        return
    with pytest.raises(UserError, match=f"has the number {number} and the dictionary 20 words"):
        sets.read(written)


def test_count_of_the_older_format_is_held_against_the_file(written):
    index = written.with_suffix(".idx")
    head = struct.pack("<8sQQQQQ", b"TNTIDX\0\0", 1, 4, 4, 2**40, 1)
    index.write_bytes(head + bytes(72))
    with pytest.raises(UserError, match="is cut short"):
        sets.read(written, "cached")
