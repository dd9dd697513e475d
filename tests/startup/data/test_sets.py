"""Numbers of a binarized text are words of its dictionary, and its index is what it seems."""

import random
import struct

import pytest
import torch
from fairseq.data import indexed_dataset

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
        sets.read(written, "lazy")


@pytest.mark.parametrize("impl", ["mmap", "lazy"])
def test_any_cut_and_any_byte_of_the_index_is_met_with_a_sentence(impl, tmp_path):
    written = sets.written(tmp_path / "s", random.Random(1), impl=impl)
    sets.read(written, impl)
    index = written.with_suffix(".idx")
    whole = index.read_bytes()
    for size in range(len(whole)):
        index.write_bytes(whole[:size])
        with pytest.raises(UserError, match=r"s\.\* is damaged or half written \(s\.idx "):
            sets.read(written, impl)
    held = []
    for place in range(48):
        for byte in (0, 1, 7, 8, 255):
            index.write_bytes(whole)
            sets.at(index, place, bytes([byte]))
            try:
                sets.read(written, impl)
            except UserError as error:
                held.append(str(error))
    assert len(held) > 150


@pytest.mark.parametrize("impl", ["cached", "huffman"])
def test_set_is_read_as_it_was_written(impl, written):
    written.with_suffix(".vocab").touch()
    with pytest.raises(UserError, match="was written with --dataset-impl mmap and is read with"):
        sets.read(written, impl)


@pytest.mark.parametrize("impl", ["mmap", "lazy"])
def test_numbers_of_another_index_are_told_from_its_own(impl, tmp_path):
    written = sets.written(tmp_path / "s", random.Random(1), impl=impl)
    with written.with_suffix(".bin").open("ab") as data:
        data.write(bytes(8))
    with pytest.raises(UserError, match=r"s\.bin is not of its index"):
        sets.read(written, impl)


@pytest.mark.parametrize("impl", ["mmap", "lazy"])
def test_set_without_words_is_refused(impl, tmp_path):
    builder = indexed_dataset.make_builder(str(tmp_path / "s.bin"), impl, 20)
    builder.add_item(torch.tensor([], dtype=torch.int64))
    builder.finalize(str(tmp_path / "s.idx"))
    with pytest.raises(UserError, match=r"s\.bin has no words"):
        sets.read(tmp_path / "s", impl)


@pytest.mark.parametrize("numbers", [(0, 2**63 - 1, -2), (0, -1, 3), (0, 2, 3)])
def test_words_of_the_older_format_are_inside_of_its_file(numbers, written):
    index = written.with_suffix(".idx")
    sizes = [(numbers[i + 1] - numbers[i] + 2**63) % 2**64 - 2**63 for i in range(2)]
    head = struct.pack("<8sQQQQQ", b"TNTIDX\0\0", 1, 5, 8, 2, 2)
    index.write_bytes(head + struct.pack("<8q", 0, 1, 2, *numbers, *sizes))
    written.with_suffix(".bin").write_bytes(struct.pack("<2q", 1, 1))
    with pytest.raises(UserError, match=r"points inside or outside|is cut short"):
        sets.read(written, "lazy")


@pytest.mark.parametrize(("number", "from_one", "held"), [(20, True, True), (21, True, False)])
def test_older_format_counts_words_from_one(number, from_one, held, tmp_path):
    written = sets.written(tmp_path / "s", random.Random(1), impl="lazy")
    sets.at(written.with_suffix(".bin"), 0, struct.pack("<i", number))
    if held:
        sets.read(written, "lazy")
        return
    with pytest.raises(UserError, match="has the number 20 and the dictionary 20 words"):
        sets.read(written, "lazy")


def test_format_that_can_not_be_read_is_named(written):
    sets.at(written.with_suffix(".idx"), 0, b"HUFFIDX\0\0")
    with pytest.raises(UserError, match="--dataset-impl huffman"):
        sets.read(written)
