import platform
import subprocess
from importlib import metadata

import pytest

from hyptrans import __version__
from hyptrans.support.provenance import commit, versions


def git(folder, *words):
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    command = ["git", "-C", folder, *identity, *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def repository(tmp_path):
    root = tmp_path.resolve() / "repository"
    (root / "inside").mkdir(parents=True)
    git(root, "init", "-q")
    (root / "file").write_text("one")
    git(root, "add", "file")
    git(root, "commit", "-q", "-m", "first")
    return root


def test_versions_name_python_this_package_and_what_is_installed():
    found = versions("numpy", "nosuch-package", "subword-nmt")
    assert list(found) == ["python", "hyptrans", "numpy", "subword-nmt"]
    assert found["python"] == platform.python_version()
    assert found["hyptrans"] == __version__
    assert found["numpy"] == metadata.version("numpy")


def test_commit_says_whether_a_file_differs_from_it(repository):
    head = git(repository, "rev-parse", "HEAD")
    assert commit(repository) == head
    (repository / "new").write_text("not tracked")
    assert commit(repository) == head
    (repository / "file").write_text("two")
    assert commit(repository) == f"{head} with changes"


def test_commit_is_empty_inside_another_repository(repository):
    assert commit(repository / "inside") is None
