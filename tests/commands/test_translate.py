import io
import shutil
import sys

import pytest

import hyptrans
from hyptrans.commands import translate
from hyptrans.commands.cli import PROGRAM
from hyptrans.inference.results import Hypothesis
from tests.commands.conftest import call, refused, typed

UNKNOWN_SUBWORDS = (
    "does not say how its text became subwords (no manifest.json): name the subword model with "
    "--sentencepiece-model or --bpe-codes, or say --no-subwords"
)


@pytest.mark.parametrize("command", ["translate", "info"])
def test_a_named_subword_model_opens_a_checkpoint_of_foreign_data(
    command, make, prepared, tmp_path, capsys, monkeypatch
):
    bare = shutil.copytree(prepared / "data-bin", tmp_path / "bare")
    words = [command, make("hybonet"), "--data", bare]
    typed(monkeypatch, b"")
    assert refused(capsys, *words) == f"{bare} {UNKNOWN_SUBWORDS}"
    model = prepared / "sentencepiece.model"
    assert call(capsys, *words, "--sentencepiece-model", model)[0] == 0


def test_translate_prints_one_line_for_each_input_line(model, texts, capsys, monkeypatch):
    wanted = hyptrans.load(model).translate(texts)
    typed(monkeypatch, "".join(f"{text}\n" for text in texts).encode())
    status, out, _ = call(capsys, "translate", model)
    assert status == 0
    assert out == "".join(f"{text}\n" for text in wanted)


def test_translations_are_utf8_in_any_locale(model, monkeypatch):
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", out)
    found = Hypothesis("\N{GREEK SMALL LETTER PI}", 0.0, 0.0, ())
    monkeypatch.setattr(translate, "n_best", lambda *_: [[found]])
    typed(monkeypatch, b"x\n")
    assert PROGRAM.run(["translate", str(model)]) == 0
    assert out.buffer.getvalue().decode() == "\N{GREEK SMALL LETTER PI}\n"


def test_translations_are_one_line_without_control_characters(model, capsys, monkeypatch):
    made = Hypothesis("a\x1b[2J\x9bm\u2028b\x85c\td", 0.0, 0.0, ())
    monkeypatch.setattr(translate, "n_best", lambda *_: [[made]])
    typed(monkeypatch, b"x\n")
    assert call(capsys, "translate", model)[1] == "a[2Jm b c\td\n"


def test_translate_n_best_numbers_its_lines(model, texts, capsys, monkeypatch):
    typed(monkeypatch, f"{texts[0]}\r\n{texts[1]}".encode())
    _, out, _ = call(capsys, "translate", model, "--n-best", 3, "--beam", 3)
    found = hyptrans.load(model).n_best(texts[:2], 3, beam=3)
    assert out.splitlines() == [
        f"{number}\t{one.score:.4f}\t{one.text}"
        for number, hypotheses in enumerate(found, start=1)
        for one in hypotheses
    ]


def test_translate_skips_and_reports_lines_that_are_too_long(model, texts, capsys, monkeypatch):
    typed(monkeypatch, f"{texts[0]}\n{'dog ' * 5000}\n{texts[1]}\n".encode())
    status, out, error = call(capsys, "translate", model)
    first, second = hyptrans.load(model).translate(texts[:2])
    assert (status, out) == (0, f"{first}\n\n{second}\n")
    assert "line 2 has" in error
    assert "its translation is left empty" in error


@pytest.mark.parametrize(
    ("words", "data", "message"),
    [
        (["nowhere-at-all"], b"", "nowhere-at-all is neither a file nor a folder"),
        (["MODEL", "--n-best", "7"], b"a\n", "--n-best must be at most --beam, 5, got 7"),
        (["MODEL", "--lenpen", "99"], b"a\n", "lenpen must be"),
        (["MODEL", "--seed", "1"], b"a\n", "seed is for samples: set --sampling, or"),
        (["MODEL"], b"a\n\xff\n", "standard input, line 2: byte 0xff at position 1"),
        (["MODEL", "--device", "tpu9"], b"a\n", "device tpu9 cannot be used"),
    ],
)
def test_translate_reports_bad_input_in_one_sentence(
    words, data, message, model, capsys, monkeypatch
):
    typed(monkeypatch, data)
    words = [model if word == "MODEL" else word for word in words]
    assert refused(capsys, "translate", *words).startswith(message)


def test_a_file_without_line_breaks_is_not_read_to_the_end(model, capsys, monkeypatch):
    # which may be endless, as /dev/zero
    endless = io.BytesIO(b"the dog.\n" + b"\0" * (9 << 20))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(endless, encoding="utf-8"))
    said = refused(capsys, "translate", model)
    assert said.startswith("standard input, line 2 has more than 4,194,304 bytes")
    assert endless.tell() < 8 << 20


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (["--device", "auto"], {}),
        (["--prefix", "the"], {"prefix": "the"}),
        (["--max-length", "3"], {"max_length": 3}),
        (
            ["--sampling", "--sampling-topk", "5", "--temperature", "0.7", "--seed", "3"],
            {"sampling": True, "sampling_topk": 5, "temperature": 0.7, "seed": 3},
        ),
    ],
    ids=lambda case: case[0] if isinstance(case, list) else "",
)
def test_command_line_and_python_have_the_same_options(
    words, options, model, texts, capsys, monkeypatch
):
    wanted = hyptrans.load(model).translate(texts, **options)
    typed(monkeypatch, "".join(f"{text}\n" for text in texts).encode())
    assert call(capsys, "translate", model, *words)[:2] == (0, "".join(f"{w}\n" for w in wanted))


@pytest.mark.parametrize(
    ("name", "file", "said"),
    [
        ("json", "json/__init__.py", "json has the name of another module: rename the folder"),
        ("sys", "sys/__init__.py", "sys has the name of another module: rename the folder"),
        ("none", "other", "none is neither a folder nor a module here"),
        ("own", "own/plugin.py", "own has no __init__.py: write one there that imports your"),
        ("own.py", "own.py", "own.py is a file: name its folder"),
    ],
)
def test_only_a_folder_that_python_can_import_is_a_plugin(
    name, file, said, make, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).touch()
    assert said in refused(capsys, "info", make("hybonet"), "--user-dir", tmp_path / name)
