"""The hook itself: what it costs, when it stands aside, how it is switched off."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = [
    "torch",
    "numpy",
    "fairseq",
    "fairseq_cli",
    "hydra",
    "hyptrans",
    "hyptrans_startup.wrapping",
]


@pytest.fixture
def python(run, tmp_path):
    """Run a line of Python at a place with no files of ours; returns what it prints."""

    def python(code, **variables):
        return run("python", "-c", code, cwd=tmp_path, **variables).stdout.strip()

    return python


LOAD = """
import os, sys
before = set(sys.modules)
calls, opened = [], []
sys.addaudithook(lambda event, arguments: event == "open" and opened.append(str(arguments[0])))
sys.setprofile(lambda frame, event, _: event == "call" and calls.append(frame.f_code.co_filename))
import hyptrans_startup
sys.setprofile(None)
own = os.path.dirname(hyptrans_startup.__file__)
print(*set(sys.modules) - before)
print(*[path for path in opened if not path.startswith(own)])
print(sum(path.startswith(own) for path in calls))
"""


def test_a_start_of_python_loads_and_reads_the_hook_alone(run, tmp_path):
    # without site, which would have loaded the hook already
    done = run("python", "-S", "-c", LOAD, cwd=tmp_path, PYTHONPATH=str(ROOT))
    modules, other_files, calls = done.stdout.splitlines()
    assert modules == "hyptrans_startup"
    assert other_files == ""
    assert 0 < int(calls) < 50


def test_process_without_fairseq_gets_a_finder_and_nothing_else(python):
    code = f"import sys; print(*[name for name in {HEAVY} if name in sys.modules])"
    assert python(code) == ""
    assert python("import sys; print(type(sys.meta_path[0]).__name__)") == "StartupFinder"


def test_hook_is_put_in_place_once(python):
    code = "import hyptrans_startup, sys; hyptrans_startup.install(); print(len(sys.meta_path))"
    without = python("import sys; print(len(sys.meta_path))", HYPTRANS_STARTUP="0")
    assert int(python(code)) == int(without) + 1


def test_variable_switches_the_hook_off(python):
    code = "import sys; print('StartupFinder' in [type(f).__name__ for f in sys.meta_path])"
    assert python(code, HYPTRANS_STARTUP="0") == "False"


@pytest.mark.parametrize(
    ("versions", "skipped", "wrapped"),
    [
        (("0.12.2", "1.0.7"), "other", "True"),
        (("0.12.3", "1.0.7"), "", "False"),
        (("0.12.2", "1.3.2"), "", "False"),
        (("0.12.2", "1.0.7"), "other,user_dir_by_name", "False"),
    ],
)
def test_hook_wraps_only_known_versions_and_what_is_not_left_out(
    versions, skipped, wrapped, python, tmp_path
):
    for name, version in zip(("fairseq", "hydra"), versions, strict=True):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"__version__ = '{version}'\n")
    (tmp_path / "fairseq" / "utils.py").write_text("def import_user_module(args): pass\n")
    code = "import hydra, fairseq.utils as u; print(hasattr(u.import_user_module, '__wrapped__'))"
    variables = {"PYTHONPATH": str(tmp_path), "HYPTRANS_STARTUP_SKIP": skipped}
    assert python(code, **variables) == wrapped


def test_line_that_loads_the_hook_survives_its_absence(python, tmp_path):
    line = (ROOT / "hyptrans.pth").read_text()
    code = f"import sys; sys.modules['hyptrans_startup'] = None; exec({line!r}); print('went on')"
    assert python(code) == "went on"


def test_wrapped_module_keeps_its_loader_and_source():
    import inspect

    import fairseq.utils

    assert type(fairseq.utils.__loader__).__name__ == "SourceFileLoader"
    assert "def import_user_module" in inspect.getsource(sys.modules["fairseq.utils"])
