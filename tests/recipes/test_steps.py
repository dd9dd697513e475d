"""How a recipe's command is written: as a user types it, and without folders of the machine."""

import sys
from pathlib import Path

import pytest

from recipes.common.options import threads_of
from recipes.common.steps import Step, identity, portable_command, shown_command


@pytest.mark.parametrize(
    ("asked", "threads"), [("3", 3), ("2,1", 2), ("", 0), ("some", 0), (None, 2)]
)
def test_threads_are_the_users_or_a_share_of_the_cores(monkeypatch, asked, threads):
    monkeypatch.setattr("os.cpu_count", lambda: 5)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if asked is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", asked)
    assert threads_of(jobs=2, models=4) == threads


def test_commands_are_shown_as_a_user_would_type_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = ["python", "-c", "print( )", str(tmp_path / "runs" / "x"), "/somewhere/b.gz"]
    shown = shown_command(Step("show", command, threads=2))
    start = f"OMP_NUM_THREADS=2 {sys.executable}"
    assert shown == f"{start} -c 'print( )' runs/x /somewhere/b.gz"


def test_a_command_is_recorded_without_the_folders_of_the_machine(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HYPTRANS_DATA", str(tmp_path / "corpora"))
    out, home = tmp_path / "out", tmp_path / "home"
    words = ["fairseq-train", out / "data", f"--x={home}/data", "--save-dir", out, home / "a.pt"]
    words += [tmp_path / "corpora" / "b.gz", f"{out}er", "--lr", "0.5", "/", ""]
    recorded = portable_command(Step("a", [*map(str, words)]), out)
    assert recorded.replace("'", "").split() == [
        *("fairseq-train", "OUT/data", "--x=~/data", "--save-dir", "OUT", "~/a.pt"),
        *("$HYPTRANS_DATA/b.gz", f"{out}er", "--lr", "0.5", "/"),
    ]
    monkeypatch.delenv("HYPTRANS_DATA")
    for folder in (Path(), Path("/")):
        command = ["x", "--lr", "0.5", "/a/b"]
        assert portable_command(Step("a", command), folder) == "x --lr 0.5 /a/b"


@pytest.mark.parametrize(
    "words",
    [
        ["--raw", "/there/data.tgz", "--vocab-size", "60", "--workers", "8", "--cpu"],
        ["--raw=/other/data.tgz", "--vocab-size", "60", "--workers=8", "--keep-intermediate"],
    ],
)
def test_a_command_is_the_same_however_its_flags_are_written(words):
    archive = Path(words[1] if words[0] == "--raw" else words[0].split("=")[1])
    step = Step("a", ["python", "prepare.py", *words], inputs=[archive])
    assert identity(step, Path("out")) == "python prepare.py --raw data.tgz --vocab-size 60"
