"""The file that loads the hook comes and goes with the package, however it is installed."""

import shutil
import sys
from pathlib import Path

import pytest

from tests.programs import ROOT, run
from tests.startup.conftest import environment

SOURCES = ["setup.py", "pyproject.toml", "MANIFEST.in", "hyptrans.pth", "hyptrans_startup.py"]
SOURCES += ["README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "hyptrans"]
ACTS = "import sys; print('hyptrans_startup' in sys.modules)"

pytestmark = pytest.mark.slow


def call(*command, cwd):
    """Run a command without the variables of this environment; returns its output."""
    return run(*command, cwd=cwd, env=environment()).stdout.strip()


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A copy of what the package is built from: building writes beside it."""
    folder = tmp_path_factory.mktemp("source")
    for name in SOURCES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    return folder


@pytest.mark.parametrize("how", ["folder", "editable", "sdist"])
def test_hook_is_installed_and_removed_with_the_package(how, source, tmp_path):
    call(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    call(python, "-m", "pip", "install", "setuptools>=77", "wheel", cwd=tmp_path)
    what = [source]
    if how == "editable":
        what = ["--editable", source]
    if how == "sdist":
        call(python, "setup.py", "sdist", f"--dist-dir={tmp_path}", cwd=source)
        what = tmp_path.glob("hyptrans-*.tar.gz")
    site = Path(call(python, "-c", "import site; print(*site.getsitepackages())", cwd=tmp_path))
    program = tmp_path / "fairseq-train"
    program.write_text(ACTS)

    options = ["--no-deps", "--no-build-isolation"]
    call(python, "-m", "pip", "install", *options, *what, cwd=tmp_path)
    assert (site / "hyptrans.pth").read_text() == (ROOT / "hyptrans.pth").read_text()
    assert call(python, program, cwd=tmp_path) == "True"
    assert call(python, "-c", ACTS, cwd=tmp_path) == "False"
    place = Path(call(python, "-c", "import hyptrans; print(hyptrans.__file__)", cwd=tmp_path))
    assert place == (source if how == "editable" else site) / "hyptrans" / "__init__.py"
    # with the bundled models
    for file in (ROOT / "hyptrans" / "pretrained").rglob("*.*"):
        assert (
            place.parent / file.relative_to(ROOT / "hyptrans")
        ).read_bytes() == file.read_bytes()
    assert (tmp_path / "venv" / "bin" / "hyptrans").exists()

    call(python, "-m", "pip", "uninstall", "--yes", "hyptrans", cwd=tmp_path)
    assert not list(site.glob("*hyptrans*"))
    assert call(python, program, cwd=tmp_path) == "False"
