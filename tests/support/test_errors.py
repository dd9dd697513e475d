import errno
import importlib
import io
import os
import sys

import pytest

from hyptrans.support.errors import UserError, one_line, run_command
from hyptrans.support.extras import require


def outcome(capsys, error, **more):
    """Exit status and stderr of a command that ends in an error."""

    def main():
        raise error

    return run_command(main, **more), capsys.readouterr().err


@pytest.mark.parametrize(
    "error",
    [
        FileNotFoundError(errno.ENOENT, "No such file", "a\x1b]0;x\x07\u2028b\n"),
        FileNotFoundError(errno.ENOENT, "No such file", b"a\x1b]0;x\x07\xe2\x80\xa8b\n"),
        OSError("a\x1b]0;x\x07\u2028b\n: No such file"),
        UserError("a\x1b]0;x\x07\u2028b\n: No such file"),
        UserError("a\x1b]0;x\u202e\u2028b\n: No such file"),
    ],
)
def test_command_errors_are_one_line_without_control_characters(capsys, error):
    shown = outcome(capsys, error)
    assert shown == (2, "error: a\ufffd]0;x\ufffd b : No such file\n")


def test_a_line_that_is_too_long_is_shortened_in_the_middle():
    assert one_line("a\r\nb\x85c\td", 7) == "a b c\td"
    assert one_line("abcdefgh", 4) == "ab [...] gh"
    assert all(len(f"a{one_line(end)}b".splitlines()) == 1 for end in "\n\r\x0b\x0c\x1c\x85\u2029")


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (UserError("--size 0 is too small"), "--size 0 is too small"),
        (FileNotFoundError(errno.ENOENT, "No such file", "a.txt"), "a.txt: No such file"),
        (OSError("odd"), "odd"),
        *(
            (error, "not enough memory; close other programs or lower the size of batches")
            for error in (
                MemoryError(),
                RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB"),
                RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you"),
            )
        ),
    ],
)
def test_user_errors_print_one_sentence_and_exit_with_status_2(capsys, error, sentence):
    assert outcome(capsys, error) == (2, f"error: {sentence}\n")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_error_for_a_full_disk_says_what_to_do(capsys, number):
    status, shown = outcome(capsys, OSError(number, os.strerror(number), "out.txt"))
    assert status == 2
    assert shown.startswith("error: out.txt: the disk is full or a size limit is reached (")
    assert shown.endswith("free some space, then the same command continues where it stopped\n")
    for stopped in ("run it again with --overwrite", ""):
        _, shown = outcome(capsys, OSError(number, os.strerror(number)), stopped=stopped)
        assert shown.endswith(f"free some space, then {stopped or 'run the same command again'}\n")


def test_ctrl_c_exits_with_status_130_and_says_how_to_resume(capsys):
    status, shown = outcome(capsys, KeyboardInterrupt())
    assert (status, shown) == (130, "\nstopped; the same command continues where it stopped\n")
    assert outcome(capsys, KeyboardInterrupt(), stopped="") == (130, "\nstopped\n")


@pytest.mark.parametrize(
    ("module", "extra"),
    [("conllu", "probing"), ("scipy.stats", "probing"), ("subword_nmt", "data")],
)
def test_error_for_a_missing_extra_names_the_install_command(capsys, monkeypatch, module, extra):
    monkeypatch.setitem(sys.modules, module, None)
    assert run_command(lambda: importlib.import_module(module)) == 2
    wanted = "error: {} is missing: pip install 'hyptrans[{}]'\n"
    assert capsys.readouterr().err == wanted.format(module, extra)
    assert run_command(lambda: require("nosuch", "data")) == 2
    assert capsys.readouterr().err == wanted.format("nosuch", "data")


def test_require_passes_on_errors_of_an_installed_module(tmp_path, monkeypatch):
    (tmp_path / "broken_of_the_test.py").write_text("import nosuch\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="No module named 'nosuch'"):
        require("broken_of_the_test", "data")


@pytest.mark.parametrize("module", ["nosuch", "pytest"])
def test_an_unexpected_missing_module_keeps_its_traceback(monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ModuleNotFoundError, match=module):
        run_command(lambda: importlib.import_module(module))


def test_traceback_is_shown_on_request(capsys, monkeypatch):
    error = UserError("--size 0 is too small")
    monkeypatch.setenv("HYPTRANS_TRACEBACK", "1")
    found, shown = outcome(capsys, error, stopped="")
    assert found == 2
    assert shown.startswith("Traceback (most recent call last):\n")
    assert "raise error" in shown
    assert shown.splitlines()[-1] == f"error: {error}"
    monkeypatch.setenv("HYPTRANS_TRACEBACK", "0")
    assert "Traceback" not in outcome(capsys, error)[1]


@pytest.mark.parametrize("error", [ValueError("bug"), SystemExit(3)])
def test_bugs_and_exits_propagate(error):
    def main():
        raise error

    with pytest.raises(type(error), match=str(error)):
        run_command(main)


def test_output_escapes_characters_the_terminal_cannot_show(monkeypatch):
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    assert run_command(lambda: sys.stdout.write("1 \u00b1 2\n")) == 0
    sys.stdout.flush()
    assert written.getvalue() == b"1 \\xb1 2\n"
