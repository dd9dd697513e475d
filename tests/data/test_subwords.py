import io

import pytest
import sentencepiece

from hyptrans.data import subwords
from hyptrans.support.errors import UserError


@pytest.fixture
def model(tmp_path):
    made = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["the dog", "one two"] * 20),
        model_writer=made,
        vocab_size=20,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    path = tmp_path / "sentencepiece.model"
    path.write_bytes(made.getvalue())
    return path


DAMAGES = {
    "empty": lambda whole: b"",
    "noise": lambda whole: bytes(range(256)) * 9,
    "cut": lambda whole: whole[:-7],
    "no text": lambda whole: whole.replace(b"\xe2\x96\x81", b"\xe2\x96\xff"),
    "too large": lambda whole: whole + bytes(subwords._MOST_OF_PIECES),
}


@pytest.mark.parametrize("damage", [*DAMAGES, "a folder"])
def test_a_damaged_sentencepiece_model_gives_a_one_sentence_error(
    model, damage, monkeypatch, capfd
):
    monkeypatch.setattr(subwords, "_MOST_OF_PIECES", 1 << 20)
    if damage == "a folder":
        model.unlink()
        model.mkdir()
    else:
        model.write_bytes(DAMAGES[damage](model.read_bytes()))
    said = r"^[^\n]*sentencepiece\.model is not a sentencepiece model \([^\n]+\)$"
    with pytest.raises(UserError, match=said), subwords.reading("sentencepiece", model):
        subwords.sentencepiece_encoder(model, None)("one")
    assert capfd.readouterr().err == ""


def test_a_shared_subword_model_must_hold_all_dictionary_pieces(model):
    known = ["\u2581one", "\u2581elsewhere"]
    with pytest.raises(ValueError, match="pieces of the dictionary: it is cut short"):
        subwords.sentencepiece_encoder(model, known)
    assert subwords.sentencepiece_encoder(model, known, one_model=False)("one")
