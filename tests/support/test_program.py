"""``hyptrans.support.program``."""

import logging
import re

import pytest

from hyptrans.commands.cli import PROGRAM as COMMANDS
from hyptrans.support.program import Command, Program
from probing.commands.cli import PROGRAM as PROBING

TALKS = """import logging
logging.basicConfig(level=logging.INFO)
logging.getLogger("talks").info("I was imported")
def add_arguments(parser):
    pass
def main(args):
    print("done")
"""


def test_what_a_command_imports_says_nothing_and_leaves_logging_as_it_was(
    tmp_path, monkeypatch, capsys
):
    (tmp_path / "talks.py").write_text(TALKS)
    monkeypatch.syspath_prepend(tmp_path)
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])  # as in a process that has configured nothing
    program = Program("p", "a program", {"talk": Command("talks", "talk", "talk")})
    assert program.run(["talk"]) == 0
    assert tuple(capsys.readouterr()) == ("done\n", "")
    assert root.handlers == []
    assert root.manager.disable == logging.NOTSET


@pytest.mark.parametrize("program", [COMMANDS, PROBING], ids=["hyptrans", "probing"])
def test_what_a_command_says_of_memory_names_its_own_options(program, monkeypatch, capsys):
    def full(words):
        raise MemoryError

    for name, command in program.commands.items():
        advice = re.findall(r"--[a-z-]+", command.memory)
        flags = program.parser(name).format_help()
        assert all(f"  {flag}" in flags for flag in advice)
        known = ("--batch-size", "--batch-tokens", "--max-tokens", "--samples")
        known += ("--max-waiting", "--max-characters")
        big = [flag for flag in known if flag in flags]
        assert advice == big
        monkeypatch.setattr(Program, "_run", lambda self, words: full(words))
        assert program.run([name]) == 2
        assert capsys.readouterr().err == f"error: not enough memory; {command.memory}\n"
        monkeypatch.undo()
