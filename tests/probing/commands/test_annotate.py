import argparse
import gzip

import pytest

from hyptrans.support.errors import UserError
from probing.commands import annotate, options
from probing.text.trees import read_conllu
from tests.probing.helpers.model import real_trees
from tests.probing.helpers.stanza import train


def run(*words):
    parser = argparse.ArgumentParser()
    options.annotate(parser)
    annotate.main(parser.parse_args([str(word) for word in words]))


def test_annotate_checks_the_text_before_loading_models(tmp_path):
    words = ["--out", tmp_path / "o", "--stanza-dir", tmp_path]
    with pytest.raises(UserError, match="none does not exist"):
        run("--text", tmp_path / "none", *words)
    (tmp_path / "empty").touch()
    with pytest.raises(UserError, match="empty is empty"):
        run("--text", tmp_path / "empty", *words)
    (tmp_path / "latin").write_bytes("caf\u00e9\n".encode("latin-1"))
    with pytest.raises(UserError, match=r"latin, line 1: .* not UTF-8"):
        run("--text", tmp_path / "latin", *words)


LINES = [
    "The dog barks. It sees a cat.",
    "",
    "I don't know what the  caf\u00e9 did\tthere!",
    "\u201cWhy?\u201d she said \u2026 \U0001f600",
    "$5 (or 5\u20ac) at http://example.org/a_b?c=d",
]


@pytest.mark.slow
def test_models_trained_with_stanza_parse_new_text(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(annotate, "BATCH_LINES", 2)
    models = train(real_trees(), tmp_path)
    text = tmp_path / "text.gz"
    text.write_bytes(gzip.compress("".join(line + "\n" for line in LINES).encode()))
    words = ["--text", text, "--stanza-dir", models, "--device", "cpu"]
    capsys.readouterr()

    run(*words, "--out", tmp_path / "free.conllu")
    assert "of 5 lines\n" in capsys.readouterr().out
    free = read_conllu(tmp_path / "free.conllu")
    for number, line in enumerate(LINES, 1):
        own = [tree for tree in free if tree.id.split("-")[0] == str(number)]
        written = "".join(token.form for tree in own for token in tree.tokens)
        assert "".join(written.split()) == "".join(line.split())

    run(*words, "--out", tmp_path / "lines.conllu", "--one-sentence-per-line")
    assert [tree.id for tree in read_conllu(tmp_path / "lines.conllu")] == ["1", "3", "4", "5"]

    run(*words, "--out", tmp_path / "words.conllu", "--pretokenized")
    trees = read_conllu(tmp_path / "words.conllu")
    assert [list(tree.words) for tree in trees] == [line.split() for line in LINES if line]
