import logging

from hyptrans.support.logs import quiet
from hyptrans.support.program import Command, Program

TALKS = """import logging
logging.basicConfig(level=logging.INFO)
logging.getLogger("talks").info("I was imported")
def add_arguments(parser):
    pass
def main(args):
    print("done")
"""


def test_imports_of_a_command_print_nothing_and_keep_logging(tmp_path, monkeypatch, capsys):
    (tmp_path / "talks.py").write_text(TALKS)
    monkeypatch.syspath_prepend(tmp_path)
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])  # as in a process that has configured nothing
    program = Program("p", "a program", {"talk": Command("talks", "talk", "talk")})
    assert program.run(["talk"]) == 0
    assert tuple(capsys.readouterr()) == ("done\n", "")
    assert root.handlers == []
    assert root.manager.disable == logging.NOTSET


def test_overlapping_redirections_restore_the_original_state():
    root = logging.getLogger()
    before = (root.handlers[:], root.level, root.manager.disable)
    first, second = quiet(), quiet()
    first.__enter__()
    root.addHandler(logging.NullHandler())  # as fairseq does when it is imported
    root.setLevel(logging.DEBUG)
    second.__enter__()
    first.__exit__(None, None, None)
    assert not root.isEnabledFor(logging.INFO)
    second.__exit__(None, None, None)
    assert (root.handlers, root.level, root.manager.disable) == before
