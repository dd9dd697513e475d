"""The cache of compiled kernels: missing, not writable, cut."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIFTED = (
    "import torch; from hyptrans.kernels import operators; "
    "print(operators.lift(torch.tensor([[3.0, 4.0]])).tolist())"
)
EXPECTED = "[[5.099019527435303, 3.0, 4.0]]"


@pytest.fixture
def package(tmp_path):
    """A copy of what the kernels need, beside which nothing can be written, whoever tries."""
    for part in ("hyptrans", "hyptrans_startup"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / part, tmp_path / part, ignore=ignored)
    (tmp_path / "hyptrans" / "kernels" / "cpu" / "__pycache__").touch()
    return tmp_path


def lift(package, **variables):
    """What the process prints that lifts a vector by a kernel: points, and its errors."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("HYPTRANS", "NUMBA", "XDG"))}
    done = subprocess.run(
        [sys.executable, "-c", LIFTED],
        cwd=package,
        env=env | {"PYTHONPATH": str(package), "OMP_NUM_THREADS": "1", **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip(), done.stderr


@pytest.mark.parametrize("home", ["missing", "file/home"])
def test_kernels_run_without_a_place_for_their_cache_and_make_no_home(home, package):
    (package / "file").touch()
    printed, errors = lift(package, HOME=str(package / home))
    assert printed == EXPECTED
    assert errors.count("every process compiles the kernels anew") == 1
    assert not (package / home).exists()


def test_folder_that_is_named_is_used(package):
    variables = {"HOME": str(package / "missing"), "NUMBA_CACHE_DIR": str(package / "cache")}
    assert lift(package, **variables) == (EXPECTED, "")
    assert list((package / "cache").rglob("*.nbc"))


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_cut_file_of_the_cache_is_made_anew(ending, package):
    variables = {"NUMBA_CACHE_DIR": str(package / "cache")}
    lift(package, **variables)
    files = list((package / "cache").rglob(f"*.{ending}"))
    whole = {file: file.stat().st_size for file in files}
    for file in files:
        os.truncate(file, whole[file] // 2)
    assert lift(package, **variables) == (EXPECTED, "")
    assert {file: file.stat().st_size for file in files} == pytest.approx(whole, rel=0.05)
