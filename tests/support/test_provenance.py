import pytest

from hyptrans.support.provenance import commit
from tests.programs import run


def git(folder, *words):
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    return run("git", "-C", folder, *identity, *words).stdout.strip()


@pytest.fixture
def repository(tmp_path):
    root = tmp_path.resolve() / "repository"
    (root / "inside").mkdir(parents=True)
    git(root, "init", "-q")
    (root / "file").write_text("one")
    git(root, "add", "file")
    git(root, "commit", "-q", "-m", "first")
    return root


def test_commit_says_whether_a_file_differs_from_it(repository):
    head = git(repository, "rev-parse", "HEAD")
    assert commit(repository) == head
    (repository / "new").write_text("not tracked")
    assert commit(repository) == head
    (repository / "file").write_text("two")
    assert commit(repository) == f"{head} with changes"
    assert commit(repository / "inside") is None  # which is no repository
