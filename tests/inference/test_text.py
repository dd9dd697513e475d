import os
from pathlib import Path

import pytest

import hyptrans
from hyptrans.data import learn, subwords
from hyptrans.data.moses import TextSteps
from hyptrans.fairseq import checkpoint
from hyptrans.inference.text import TextRules
from hyptrans.support.errors import UserError
from tests.probing.helpers.model import make_checkpoint, prepared_folder, sentences, write_lines

TEXT = ["The dog sees 5% of it, don't go!", "a well-known cat", "caf\u00e9 \u0130stanbul."]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    text = write_lines(folder / "text", [*sentences(300), *TEXT])
    for kind, size in (("sentencepiece", 50), ("subword-nmt", 40)):
        learn.learn(kind, [text], size, folder / kind)
    return {kind: folder / kind for kind in ("sentencepiece", "subword-nmt")} | {"none": None}


@pytest.mark.parametrize("kind", ["sentencepiece", "subword-nmt", "none"])
@pytest.mark.parametrize("flags", [(), ("tokenize",), ("tokenize", "aggressive")], ids=str)
def test_detokenizing_restores_the_text(models, kind, flags):
    steps = TextSteps("en", **dict.fromkeys(flags, True))
    rules = TextRules(kind, models[kind], True, (steps, steps))
    split = rules.encoder(1, frozenset("".join(TEXT)) | {subwords.WORD_START})
    join = rules.decoder()
    for text in TEXT:
        pieces = split(text)
        assert len(pieces) >= len(text.split())
        assert join(" ".join(pieces)) == text


@pytest.mark.parametrize("kind", ["sentencepiece", "subword-nmt", "none"])
def test_whitespace_and_format_characters_count_as_empty(models, kind):
    steps = TextSteps("en")
    split = TextRules(kind, models[kind], True, (steps, steps)).encoder(0, frozenset())
    assert [split(text) for text in ("", " ", "\x00 ", " \ufeff", "\t\u3000\x07")] == [[]] * 5


@pytest.mark.parametrize(
    ("codes", "said"),
    [
        ("#version: 9.9.9.9\na b\n", "its version is neither 0.1 nor 0.2"),
        # the library takes minutes to find the end of this one
        (f"#version: 0{'.0' * 50_000}!\na b\n", "its version is neither 0.1 nor 0.2"),
        ("a b\n" * 1_000_001, "it has more than 1,000,000 merges"),
        ("a" * (16 << 20 | 1), "it has more than 16,777,216 bytes"),
        ("abc" * 1000, "Error: invalid line 1 in BPE codes"),
    ],
    ids=["version", "long version", "merges", "bytes", "one word"],
)
def test_unusable_merges_are_reported_before_any_text_is_read(tmp_path, codes, said):
    (tmp_path / "codes").write_text(codes)
    steps = TextSteps("en")
    rules = TextRules("subword-nmt", tmp_path / "codes", True, (steps, steps))
    with pytest.raises(UserError) as caught:
        rules.encoder(0, frozenset())
    assert str(caught.value) == f"{tmp_path}/codes is not a subword-nmt model ({said})"


def test_moses_without_a_subword_model_is_refused(make, prepared):
    with pytest.raises(UserError, match="leave --moses out"):
        hyptrans.load(make("transformer"), moses=True)


def test_a_relative_data_folder_resolves_from_the_checkpoint(tmp_path, monkeypatch):
    # two projects whose data have one name
    for project, seed in (("a", 1), ("b", 2)):
        lines = sentences(300, seed)
        prepared_folder(tmp_path / project / "data", lines)
    (tmp_path / "a" / "checkpoints").mkdir()
    made = tmp_path / "a" / "checkpoints" / "c.pt"
    monkeypatch.chdir(tmp_path / "a")
    make_checkpoint(made, Path("data"), "transformer")
    own = (tmp_path / "a" / "data" / "sentencepiece.model").resolve()
    for present in ("a", "b", "."):
        monkeypatch.chdir(tmp_path / present)
        for name in (made, os.path.relpath(made)):
            assert checkpoint.read(Path(name)).text.model.resolve() == own
    # away from it, as where --save-dir is on another disk
    (tmp_path / "disk").mkdir()
    alone = made.rename(tmp_path / "disk" / "c.pt")
    monkeypatch.chdir(tmp_path / "a")
    assert checkpoint.read(alone).text.model.resolve() == own
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"its data folder data/data-bin is not there"):
        checkpoint.read(alone)
