"""Rules of a sentencepiece model are looked at before the library gets the file."""

import io
import os
import struct
import time

import pytest
import sentencepiece

from hyptrans.dataprep.steps import subwords
from hyptrans.dataprep.steps.rules import MOST_BYTES, _fields, check, checked, load
from hyptrans.support.errors import UserError


def model(tmp_path, **options):
    made = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["the dog", "one two"] * 20),
        model_writer=made,
        vocab_size=20,
        hard_vocab_limit=False,
        minloglevel=2,
        **options,
    )
    path = tmp_path / "sentencepiece.model"
    path.write_bytes(made.getvalue())
    return path


def rule(tmp_path, length):
    path = tmp_path / "rules.tsv"
    path.write_text(f"61\t{' '.join(['62'] * length)}\n")
    return {"normalization_rule_tsv": str(path)}


@pytest.mark.parametrize("name", ["identity", "nmt_nfkc", "nmt_nfkc_cf", "nfkc"])
def test_rules_of_the_library_are_taken(tmp_path, name):
    path = model(tmp_path, normalization_rule_name=name)
    whole = sentencepiece.SentencePieceProcessor(model_file=str(path))
    text = "one \ufb01 \u2460 e\u0301 DOG"
    assert load(path).encode(text, out_type=str) == whole.encode(text, out_type=str)
    with subwords.reading("sentencepiece", path):
        assert subwords.sentencepiece_encoder(path, None)("one")


def test_a_model_lacks_no_pieces_of_its_dictionary_unless_each_language_has_one(tmp_path):
    path = model(tmp_path)
    known = ["\u2581one", "\u2581elsewhere"]
    with pytest.raises(ValueError, match="pieces of the dictionary: it is another"):
        subwords.sentencepiece_encoder(path, known)
    assert subwords.sentencepiece_encoder(path, known, one_model=False)("one")


def test_rules_of_ones_own_are_taken_as_long_as_they_write_little(tmp_path):
    load(model(tmp_path, **rule(tmp_path, MOST_BYTES)))
    path = model(tmp_path, **rule(tmp_path, MOST_BYTES + 1))
    said = r"is not a sentencepiece model \(a rule writes more than 1,000 bytes"
    with pytest.raises(UserError, match=said), subwords.reading("sentencepiece", path):
        subwords.sentencepiece_encoder(path, None)


def test_a_model_that_ends_between_two_fields_is_refused(tmp_path):
    whole = model(tmp_path).read_bytes()
    fields = [field for *_, field in _fields(whole, 1_000)]
    assert b"".join(fields) == checked(whole) == whole
    pieces = sum(field[:1] == b"\x0a" for field in fields)
    for end in range(len(fields)):
        # the library takes most of them
        with pytest.raises(ValueError, match="cut short" if end else "empty"):
            checked(b"".join(fields[:end]))
    with pytest.raises(ValueError, match=f"it has {pieces - 1} pieces of {pieces}"):
        checked(b"".join(fields[1:]))
    # more than were learned are somebody's own
    checked(fields[pieces - 1] + whole)


def test_what_the_library_might_read_otherwise_does_not_reach_it(tmp_path):
    whole = model(tmp_path).read_bytes()
    # sentences that the library tries, and numbers of fields that it does not know
    assert checked(whole + b"\x22\x02\x0a\x00" + b"\xc2\x0c\x01x") == checked(whole)
    # a longer way to write the same number
    assert whole[:1] == b"\x0a"
    with pytest.raises(ValueError, match="a number is written longer than it is"):
        checked(b"\x8a\x80\x00" + whole[1:])
    # and a number that only the first 32 bits of make that of the rules
    rules = next(place for place in range(len(whole)) if whole[place:].startswith(b"\x1a"))
    with pytest.raises(ValueError, match="a field has no number"):
        checked(whole[:rules] + b"\x9a\x80\x80\x80\x10" + whole[rules + 1 :])


@pytest.mark.parametrize(
    "data", [b"\x1a\xff", b"\x1a", b"\x1b", b"\x09123", b"\xff" * 11, b"\x1a\x03\x12\x05a"]
)
def test_what_is_no_protocol_buffer_is_refused(data):
    with pytest.raises(ValueError, match=r"cut short|of kind"):
        checked(data)


@pytest.mark.parametrize("data", [b"", b"\x22\x00"])
def test_an_empty_model_is_refused(tmp_path, data):
    path = tmp_path / "model"
    path.write_bytes(data)
    said = r"model is not a sentencepiece model \(it is empty\)"
    with pytest.raises(UserError, match=said), subwords.reading("sentencepiece", path):
        subwords.sentencepiece_encoder(path, None)


def test_many_long_texts_are_looked_at_in_a_moment():
    written = (b"y" * MOST_BYTES + b"\0") * 5_000
    rules = struct.pack("<I", 4) + b"trie" + written
    begun = time.process_time()
    check(rules)
    assert time.process_time() - begun < 0.5
    with pytest.raises(ValueError, match="a rule writes more"):
        check(rules + b"y" * (MOST_BYTES + 1) + b"\0")


def test_large_files_and_many_fields_are_refused(tmp_path):
    path = tmp_path / "model"
    path.write_bytes(b"\x0a\x00" * 1_000_001)
    with pytest.raises(ValueError, match="more than 1,000,000 fields in"):
        load(path)
    with pytest.raises(ValueError, match="more than 100 fields in one place"):
        checked(b"\x1a\xca\x01" + b"\x18\x01" * 101)
    os.truncate(path, (64 << 20) + 1)
    with pytest.raises(ValueError, match="more than 67,108,864 bytes"):
        load(path)


@pytest.mark.parametrize("field", [3, 5])
@pytest.mark.parametrize(
    ("written", "problem"),
    [(b"x\0" + b"y" * 9, "are cut short"), (b"x\0" + b"y" * 1001 + b"\0", "a rule writes more")],
)
def test_rules_are_found_beside_other_fields(field, written, problem):
    rules = struct.pack("<I", 4) + b"trie" + written

    def with_length(number, value):
        size = len(value)
        length = [size] if size < 128 else [size & 127 | 128, size >> 7]
        return bytes([number << 3 | 2, *length]) + value

    spec = b"\x08\x01" + b"\x0a\x01n" + with_length(2, rules)
    data = b"\x0d1234" + b"\x0912345678" + with_length(field, spec)
    with pytest.raises(ValueError, match=problem):
        checked(data)
