"""The cache of compiled kernels: missing, truncated, or not writable."""

import os
import random
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


NOBODY = 65534
AS_NOBODY = [
    "setpriv",
    f"--reuid={NOBODY}",
    f"--regid={NOBODY}",
    "--clear-groups",
    # where an interpreter lies in root's home, nobody else could start it; to write is not in it
    "--inh-caps=-all,+dac_read_search",
    "--ambient-caps=+dac_read_search",
    "--bounding-set=-all,+dac_read_search",
]
TRAIN = ["--arch=hybonet_tiny", "--criterion=cross_entropy", "--optimizer=adam", "--lr=1e-3"]
TRAIN += ["--max-tokens=200", "--max-update=2", "--save-dir=ck", "--no-progress-bar"]
MODEL = ["--path=ck/checkpoint_last.pt", "--user-dir=hyptrans", "--cpu"]


@pytest.mark.slow
@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv, of util-linux, is missing")
def test_a_user_with_one_writable_folder_trains_and_translates(package):
    (package / "hyptrans" / "kernels" / "__pycache__").unlink()
    home, work = package / "home", package / "work"
    home.mkdir()
    work.mkdir()
    os.chown(work, NOBODY, NOBODY)
    draw = random.Random(0)
    for name in ("train", "valid", "test"):
        for side in ("en", "de"):
            lines = (" ".join(draw.choices("abcdef", k=4)) + "\n" for _ in range(30))
            (work / f"{name}.{side}").write_text("".join(lines))
    before = {path for path in package.rglob("*") if work not in path.parents}
    sets = [f"--{name}pref={name}" for name in ("train", "valid", "test")]
    call_as_nobody(work, "fairseq-preprocess", "-s=en", "-t=de", *sets, "--destdir=bin")
    errors = call_as_nobody(work, "fairseq-train", "bin", "--user-dir=hyptrans", "--cpu", *TRAIN)
    assert errors.count("every process compiles the kernels anew") == 1
    call_as_nobody(work, "fairseq-generate", "bin", *MODEL, "--results-path=out")
    translated = (work / "out" / "generate-test.txt").read_text()
    assert translated.count("\nD-") == 30
    assert {path for path in package.rglob("*") if work not in path.parents} == before


def call_as_nobody(work, *command):
    """Run a command of this environment as an unprivileged user; returns what it says of errors."""
    program = Path(sys.executable).with_name(command[0])
    env = {k: v for k, v in os.environ.items() if not k.startswith(("HYPTRANS", "NUMBA", "XDG"))}
    env |= {"PYTHONPATH": str(work.parent), "HOME": str(work.parent / "home")}
    done = subprocess.run(
        [*AS_NOBODY, str(program), *command[1:]],
        cwd=work,
        env=env | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout + done.stderr
