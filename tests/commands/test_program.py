"""The program as a whole: help, examples, streams that are closed or full."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import hyptrans
from hyptrans.commands.cli import PROGRAM
from hyptrans.inference.load import shipped
from probing.commands.cli import PROGRAM as PROBING

ROOT = Path(__file__).parents[2]
PROGRAMS = [PROGRAM, *map(PROGRAM.within, PROGRAM.programs)]


def helped(capsys, *words):
    with pytest.raises(SystemExit) as ended:
        PROGRAM.run(words)
    assert ended.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_every_command_has_help_with_an_example(program, capsys):
    within = program.name.split()[1:]
    overview = helped(capsys, *within)
    for name in program.commands:
        shown = helped(capsys, *within, name, "--help")
        assert shown.startswith(f"usage: {program.name} {name} ")
        assert f"example:\n  {program.name} {name} " in shown
        assert f"\n  {name} " in overview
    assert helped(capsys, *within, "--help") == overview


def test_hyptrans_prints_its_version_and_commands(capsys):
    assert helped(capsys, "--version") == f"hyptrans {hyptrans.__version__}\n"
    overview = helped(capsys)
    assert all(f"\n  {name} " in overview for name in PROGRAM.programs)
    assert PROBING.name == "hyptrans probe"


def test_examples_name_existing_models(capsys):
    examples = [command.example for command in PROGRAM.commands.values()]
    named = [
        example.split()[1] for example in examples if example.startswith(("translate", "info"))
    ]
    named += re.findall(r'load\("([^"]+)"\)', hyptrans.load.__doc__)
    assert len(named) == 3
    assert set(named) <= set(shipped())


def test_out_refuses_a_folder_before_reading_input(tmp_path, capsys):
    refused = []
    for program in (PROGRAM, PROBING):
        for name in program.commands:
            parser = program.parser(name)[0]
            if not re.search(r"--out FILE", parser.format_help()):
                continue
            assert program.run([name, "--out", str(tmp_path)]) == 2
            assert capsys.readouterr().err == (
                f"error: --out {tmp_path} is a folder, a file is needed: name another\n"
            )
            refused.append(name)
    assert refused == ["average", "plot", "annotate", "geometry"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("words", [["info"], pytest.param(["translate"], marks=pytest.mark.slow)])
def test_output_to_a_full_disk_reports_failure(words, monkeypatch):
    # as it is for most users, written when the buffer is full, or in the end
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    command = [sys.executable, "-m", "hyptrans", *words, "tatoeba-en-de"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            command, cwd=ROOT, input="Hello.\n", stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert (done.returncode, done.stderr) == (
        2,
        "error: the disk is full or a size limit is reached (No space left on device); free some "
        "space, then run the same command again\n",
    )
