import pytest

from tests.probing.commands.runs import error_of, run_words
from tests.probing.helpers.trees import rows


def test_an_encoder_must_be_named(made, tmp_path, capsys):
    assert "no encoder is named" in error_of(capsys, run_words(made, tmp_path, models=[]))
    assert "--hf" in error_of(capsys, run_words(made, tmp_path, "--hf", "/none", models=[]))
    # results would go into the encoder's own folder
    error = error_of(capsys, run_words(made, made, models=["hybonet"]))
    assert "into the folder that holds" in error


CHOOSE = " cannot choose layers: it needs a sentence of 5 to 50 words, and an edge between words"


@pytest.mark.parametrize(
    ("part", "text", "reason"),
    [
        ("train", rows(0), " has only sentences of one word"),
        ("dev", rows(0, 1, 1, 1) + rows(0, *[1] * 50), CHOOSE),
        ("dev", rows(0, 1, 1, 1, 1, tag="PUNCT"), CHOOSE),
        ("test", rows(2, 1), ", line 1: the tree has no root"),
    ],
)
def test_unusable_trees_are_refused_before_any_work(made, tmp_path, capsys, part, text, reason):
    file = tmp_path / "wrong.conllu"
    file.write_text(text)
    words = run_words(made, tmp_path / "out")
    words[words.index(f"--{part}") + 1] = str(file)
    assert error_of(capsys, words).startswith(f"error: {file}{reason}")
    assert not (tmp_path / "out").exists()


def test_development_sentences_without_states_choose_no_layer(made, tmp_path, capsys):
    # the only sentence of 5 to 50 words has a word that no encoder can take
    text = rows(0, 1) + rows(0, 1, 1, 1, 1).replace("\tw\t", "\t\x07\t", 1)
    (tmp_path / "dev.conllu").write_text(text)
    words = run_words(made, tmp_path / "out", "--dev", str(tmp_path / "dev.conllu"))
    assert error_of(capsys, words).startswith(f"error: {tmp_path / 'dev.conllu'}{CHOOSE}")
    assert not list((tmp_path / "out").rglob("*probes.pt"))


def test_wrong_options_give_one_sentence_errors(made, tmp_path, capsys):
    def error(*extra):
        return error_of(capsys, run_words(made, tmp_path / "out", *extra))

    assert "--names has 1 values for 2 encoders" in error("--names", "one")
    for names in (("a", "A"), ("linear chain", "b"), ("..", "b")):
        assert "--names must be letters" in error("--names", *names)
    data = [word for i in range(2) for word in ("--data", str(made / "data"))]
    assert "--data has 3 values for 2" in error(*data)
    assert "--punct ptb needs tags in the column XPOS" in error("--punct", "ptb")
    bare = tmp_path / "bare.conllu"
    bare.write_text((made / "test.conllu").read_text().replace("PUNCT", "_").replace("NOUN", "_"))
    untagged = error("--test", str(bare))
    assert "--punct upos needs tags in the column UPOS and sentence s2-0 has none" in untagged
    # control trees need the tags of the training set, too
    assert "sentence s2-0 has none" in error("--control", "--train", str(bare))
    assert "missing.pt is not a file" in error("--checkpoint", str(tmp_path / "missing.pt"))
    assert not (tmp_path / "out").exists()
