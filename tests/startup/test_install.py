"""The file that loads the hook comes and goes with the package, however it is installed."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ["setup.py", "pyproject.toml", "MANIFEST.in", "hyptrans.pth", "README.md", "LICENSE"]
SOURCES += ["CHANGELOG.md", "CITATION.cff", "hyptrans", "hyptrans_startup"]
FIRST_FINDER = "import sys; print(type(sys.meta_path[0]).__name__)"

pytestmark = pytest.mark.slow


def call(*command, cwd):
    """Run a command without the variables of this environment; returns its output."""
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A copy of what the package is built from: building writes beside it."""
    folder = tmp_path_factory.mktemp("source")
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(
                ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__")
            )
        else:
            shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.fixture
def environment(tmp_path):
    """A fresh virtual environment with pip and setuptools; returns its interpreter."""
    call(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    call(python, "-m", "pip", "install", "setuptools>=64", "wheel", cwd=tmp_path)
    return python


@pytest.mark.parametrize("how", ["folder", "editable", "sdist"])
def test_hook_comes_and_goes_with_the_package(how, source, environment, tmp_path):
    what = [source]
    if how == "editable":
        what = ["--editable", source]
    if how == "sdist":
        call(environment, "setup.py", "sdist", f"--dist-dir={tmp_path}", cwd=source)
        what = tmp_path.glob("hyptrans-*.tar.gz")
    options = ["--no-deps", "--no-build-isolation"]
    site = Path(
        call(environment, "-c", "import site; print(*site.getsitepackages())", cwd=tmp_path)
    )

    call(environment, "-m", "pip", "install", *options, *what, cwd=tmp_path)
    assert (site / "hyptrans.pth").read_text() == (ROOT / "hyptrans.pth").read_text()
    assert call(environment, "-c", FIRST_FINDER, cwd=tmp_path) == "StartupFinder"
    place = Path(call(environment, "-c", "import hyptrans; print(hyptrans.__file__)", cwd=tmp_path))
    assert place == (source if how == "editable" else site) / "hyptrans" / "__init__.py"

    call(environment, "-m", "pip", "uninstall", "--yes", "hyptrans", cwd=tmp_path)
    assert not list(site.glob("*hyptrans*"))
    assert call(environment, "-c", FIRST_FINDER, cwd=tmp_path) != "StartupFinder"


def test_package_pins_no_build_of_torch(source, environment, tmp_path):
    call(
        environment,
        "-m",
        "pip",
        "install",
        "--no-deps",
        "--no-build-isolation",
        source,
        cwd=tmp_path,
    )
    code = "from importlib.metadata import requires; print(*requires('hyptrans'), sep='\\n')"
    wanted = call(environment, "-c", code, cwd=tmp_path).splitlines()
    assert "torch>=2.6" in wanted
    assert 'fairseq==0.12.2; extra == "fairseq"' in wanted
