"""The programs in which the hook acts, and its effect on them."""

import re
from pathlib import Path

import pytest

import hyptrans_startup

ROOT = Path(__file__).parents[2]
ACTS = "import sys; print('hyptrans_startup' in sys.modules)"
SPINS = "import os; print(os.environ.get('GOMP_SPINCOUNT'))"


@pytest.fixture
def program(run, tmp_path):
    """Run code as a program of some name, at a place with no files of ours; returns what it prints.

    It is a script, ``-m`` with a module, or ``-c``.
    """

    def program(code, name="-c", **variables):
        if name == "-c":
            words = ["-c", code]
        elif name.startswith("-m "):
            module = tmp_path.joinpath(*name[3:].split(".")).with_suffix(".py")
            module.parent.mkdir(exist_ok=True)
            (module.parent / "__init__.py").touch()
            module.write_text(code)
            words = name.split()
        else:
            (tmp_path / name).write_text(code)
            words = ["-u", tmp_path / name]
        return run("python", *words, cwd=tmp_path, **variables).stdout.strip()

    return program


@pytest.mark.parametrize("name", ["fairseq-train", "fairseq-eval-lm", "-m fairseq_cli.train"])
def test_hook_acts_in_fairseq_programs(name, program):
    assert program(ACTS, name) == "True"


@pytest.mark.parametrize("name", ["-c", "train.py", "my-fairseq-train", "-m fairseq_like.train"])
def test_hook_acts_in_no_other_program(name, program):
    assert program(ACTS, name) == "False"


@pytest.mark.parametrize(
    ("name", "acts"), [("fairseq-train", "True"), ("fairseq-of-mine", "False")]
)
def test_hook_line_matches_whole_names_of_fairseq_programs(name, acts, run, tmp_path):
    """Without site-packages, so that the line of this checkout acts and no installed one."""
    line = (ROOT / "hyptrans.pth").read_text()
    (tmp_path / name).write_text(f"import sys; sys.path.append({str(ROOT)!r})\n{line}\n{ACTS}\n")
    assert run("python", "-S", tmp_path / name, cwd=tmp_path).stdout.strip() == acts


def test_python_startup_imports_no_hyptrans_module(run, tmp_path):
    done = run("python", "-X", "importtime", "-c", "pass", cwd=tmp_path)
    assert "site" in done.stderr
    # setuptools has a module of its own for an editable installation
    assert not re.search(r"\| +(hyptrans|fairseq)", done.stderr)


def test_child_processes_inherit_the_hook(program):
    child = (
        f"import subprocess, sys; print(subprocess.check_output([sys.executable, '-c', {ACTS!r}]))"
    )
    assert "True" in program(child, "fairseq-train")
    assert "False" in program(child, "train.py")


def test_environment_variable_disables_the_hook(program):
    code = "import hyptrans_startup as h, sys; h.install(); print(h.Finder in sys.meta_path)"
    assert program(code, "fairseq-train") == "True"
    assert program(code, "fairseq-train", HYPTRANS_STARTUP="0") == "False"


@pytest.mark.parametrize(
    ("name", "said", "seen"),
    [
        ("fairseq-train", {}, "1000"),
        ("fairseq-train", {"GOMP_SPINCOUNT": "5"}, "5"),
        ("fairseq-train", {"OMP_WAIT_POLICY": "active"}, "None"),
        ("train.py", {}, "None"),
    ],
)
def test_fairseq_threads_wait_briefly_unless_the_user_sets_a_policy(name, said, seen, program):
    assert program(SPINS, name, **said) == seen


def test_hyptrans_threads_wait_briefly(program):
    code = (
        "from hyptrans.commands.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
    )
    assert program(code + SPINS).endswith("1000")
    assert program(code + SPINS, OMP_WAIT_POLICY="active").endswith("None")


@pytest.fixture
def another_fairseq(tmp_path):
    """Write a package of that name, of a version or of none; returns the code that imports it."""

    def another_fairseq(version, source):
        (tmp_path / "fairseq").mkdir()
        (tmp_path / "fairseq" / "__init__.py").write_text(version and f"__version__ = {version!r}")
        (tmp_path / "fairseq" / "utils.py").write_text(source)
        return f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import fairseq.utils as u; "

    return another_fairseq


@pytest.mark.parametrize(
    ("version", "edited"), [("0.12.2", "True"), ("0.12.3", "False"), ("", "False")]
)
def test_hook_leaves_other_fairseq_versions_alone(version, edited, program, another_fairseq):
    code = another_fairseq(version, "text = 'os.path.abspath(args.user_dir)'")
    assert program(code + "print('plugin_folder' in u.text)", "fairseq-train") == edited


def test_an_edit_without_exactly_one_match_stops_the_import(program, another_fairseq):
    code = another_fairseq("0.12.2", "")
    code = f"try:\n    {code}\nexcept ImportError as error: print(error)"
    told = "fairseq.utils of fairseq 0.12.2 has 'os.path.abspath(args.user_dir' 0 times"
    assert program(code, "fairseq-train").startswith(told)


def test_every_edit_matches_once_and_keeps_the_line_count():
    import fairseq

    site = Path(fairseq.__file__).parents[1]
    for module, edits in hyptrans_startup.EDITS.items():
        source = site.joinpath(*module.split(".")).with_suffix(".py").read_text()
        for old, new in edits:
            assert source.count(old) == 1, (module, old)
            assert old.count("\n") == new.count("\n"), (module, old)


def test_a_library_imports_hyptrans_fairseq_first(program):
    code = "import hyptrans.fairseq, fairseq.models as m; print('hybonet' in m.MODEL_REGISTRY)"
    assert program(code) == "True"
