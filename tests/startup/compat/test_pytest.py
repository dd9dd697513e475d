"""A user's own tests may import fairseq, without a line about it in their configuration."""

import functools

import pytest

_slow = functools.partial(pytest.param, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    "options", [[], _slow(["-p", "no:hydra_pytest"]), _slow(["--assert=plain"])]
)
def test_a_test_file_imports_fairseq_under_pytest(options, run, tmp_path):
    (tmp_path / "test_own.py").write_text("import fairseq\n\n\ndef test_own():\n    assert True\n")
    done = run("python", "-m", "pytest", *options, cwd=tmp_path, check=False)
    assert " 1 passed" in done.stdout.splitlines()[-1], done.stdout + done.stderr


def test_assertions_of_a_users_test_file_are_still_rewritten(run, tmp_path):
    (tmp_path / "test_own.py").write_text("def test_own():\n    left = 3\n    assert left == 4\n")
    done = run("python", "-m", "pytest", cwd=tmp_path, check=False)
    assert "assert 3 == 4" in done.stdout
