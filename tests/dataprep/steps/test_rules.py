"""Rules of a sentencepiece model are looked at before the library gets the file."""

import io
import struct

import pytest
import sentencepiece

from hyptrans.dataprep.steps import subwords
from hyptrans.dataprep.steps.rules import MOST_BYTES, check_rules
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
    check_rules(path)
    with subwords.reading("sentencepiece", path):
        assert subwords.sentencepiece_encoder(path, None)("one")


def test_rules_of_ones_own_are_taken_as_long_as_they_write_little(tmp_path):
    check_rules(model(tmp_path, **rule(tmp_path, MOST_BYTES)))
    path = model(tmp_path, **rule(tmp_path, MOST_BYTES + 1))
    with (
        pytest.raises(UserError, match=r"is not a sentencepiece model \(a rule writes 1,001 bytes"),
        subwords.reading("sentencepiece", path),
    ):
        pytest.fail("the library got it")


@pytest.mark.parametrize(
    "data", [b"\x1a\xff", b"\x1a", b"\x1b", b"\x09123", b"\xff" * 11, b"\x1a\x03\x12\x05a"]
)
def test_what_is_no_protocol_buffer_is_refused(tmp_path, data):
    path = tmp_path / "model"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"cut short|of kind"):
        check_rules(path)


@pytest.mark.parametrize("field", [3, 5])
def test_rules_are_found_beside_other_fields_and_without_an_end(tmp_path, field):
    rules = struct.pack("<I", 4) + b"trie" + b"x\0" + b"y" * 9
    spec = b"\x08\x01" + b"\x0a\x01n" + bytes([2 << 3 | 2, len(rules)]) + rules
    path = tmp_path / "model"
    path.write_bytes(b"\x0d1234" + b"\x0912345678" + bytes([field << 3 | 2, len(spec)]) + spec)
    with pytest.raises(ValueError, match="a rule writes 9 bytes"):
        check_rules(path)
