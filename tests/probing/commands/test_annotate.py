import gzip

import pytest

from probing.commands import annotate
from probing.commands.cli import main
from probing.text.trees import read_conllu
from tests.probing.commands.runs import error_of
from tests.probing.helpers.model import real_trees
from tests.probing.helpers.stanza import train

LINES = [
    "The dog barks. It sees a cat.",
    "",
    "I don't know what the  caf\u00e9 did\tthere!",
    "\u201cWhy?\u201d she said \u2026 \U0001f600",
    "$5 (or 5\u20ac) at http://example.org/a_b?c=d",
]


def test_annotate_checks_the_text_before_loading_models(tmp_path, capsys):
    (tmp_path / "empty").touch()
    (tmp_path / "latin").write_bytes("caf\u00e9\n".encode("latin-1"))
    for name, reason in (("none", "does not exist"), ("empty", "is empty"), ("latin", "line 1: ")):
        words = ["annotate", "--text", tmp_path / name, "--out", tmp_path / "o"]
        found = error_of(capsys, [*words, "--stanza-dir", tmp_path])
        assert name in found
        assert reason in found


@pytest.mark.slow
def test_models_trained_with_stanza_parse_new_text(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(annotate, "BATCH_LINES", 2)
    models = train(real_trees(), tmp_path)
    text = tmp_path / "text.gz"
    text.write_bytes(gzip.compress("".join(line + "\n" for line in LINES).encode()))

    def parsed(*flags):
        out = tmp_path / "parsed.conllu"
        words = ["annotate", "--text", text, "--stanza-dir", models, "--device", "cpu", *flags]
        assert main([*map(str, words), "--out", str(out)]) == 0
        return read_conllu(out)

    capsys.readouterr()
    free = parsed()
    assert "of 5 lines\n" in capsys.readouterr().out
    for number, line in enumerate(LINES, 1):
        own = [tree for tree in free if tree.id.split("-")[0] == str(number)]
        written = "".join(token.form for tree in own for token in tree.tokens)
        assert "".join(written.split()) == "".join(line.split())
    lines = parsed("--one-sentence-per-line")
    assert [tree.id for tree in lines] == ["1", "3", "4", "5"]
    words = [list(tree.words) for tree in parsed("--pretokenized")]
    assert words == [line.split() for line in LINES if line]
