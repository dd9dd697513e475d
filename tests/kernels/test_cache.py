"""The cache of compiled kernels: missing, truncated, or not writable."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NORMALIZED = (
    "import torch; from hyptrans.kernels.lorentz import normalize; "
    "print(normalize(torch.tensor([[5.0, 3.0]])).tolist())"
)
EXPECTED = "[[1.25, 0.75]]"


@pytest.fixture
def package(tmp_path):
    """Return a copy of what the kernels need in a folder that nobody can write to."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "hyptrans", tmp_path / "hyptrans", ignore=ignored)
    (tmp_path / "hyptrans" / "kernels" / "__pycache__").touch()
    return tmp_path


def normalized(package, **variables):
    """What the process prints that makes a point by a kernel: the point, and its errors."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("HYPTRANS", "NUMBA", "XDG"))}
    done = subprocess.run(
        [sys.executable, "-c", NORMALIZED],
        cwd=package,
        env=env | {"PYTHONPATH": str(package), "OMP_NUM_THREADS": "1", **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip(), done.stderr


@pytest.mark.slow
def test_kernels_run_without_a_writable_cache(package):
    (package / "file").touch()
    printed, errors = normalized(package, HOME=str(package / "file" / "home"))
    assert printed == EXPECTED
    assert errors.count("every process compiles the kernels anew") == 1


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_kernels_run_despite_a_truncated_cache_file(ending, package):
    variables = {"NUMBA_CACHE_DIR": str(package / "cache")}
    normalized(package, **variables)
    for file in (package / "cache").rglob(f"*.{ending}"):
        os.truncate(file, file.stat().st_size // 2)
    assert normalized(package, **variables)[0] == EXPECTED
