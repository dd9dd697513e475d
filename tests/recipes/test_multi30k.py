from functools import partial

import pytest

from tests.recipes.scripts import run_script

run_recipe = partial(run_script, "multi30k_en_de")


@pytest.fixture(autouse=True)
def no_data(monkeypatch):
    monkeypatch.delenv("HYPTRANS_DATA", raising=False)


def test_without_data_it_says_which_are_needed(tmp_path):
    run = run_recipe("--out", str(tmp_path / "out"))
    assert run.returncode == 2
    assert run.stderr.startswith("error: --data is needed: a folder with Multi30k task 1")


def test_a_missing_file_is_named_under_both_endings(tmp_path):
    (tmp_path / "train.en").write_text("a\n", encoding="utf-8")
    run = run_recipe("--data", str(tmp_path), "--out", str(tmp_path / "out"))
    assert run.returncode == 2
    expected = f"error: --data: {tmp_path}/train.de and train.de.gz are both missing\n"
    assert run.stderr == expected


def test_data_are_taken_from_the_folder_that_the_variable_names(tmp_path, monkeypatch):
    monkeypatch.setenv("HYPTRANS_DATA", str(tmp_path))
    run = run_recipe("--out", str(tmp_path / "out"))
    assert run.returncode == 2
    assert run.stderr.startswith(f"error: --data: {tmp_path}/multi30k_en_de/train.en and ")


def test_help_names_units_defaults_and_an_example():
    run = run_recipe("--help")
    assert run.returncode == 0
    assert "optimizer steps of each training (default: 3000)" in " ".join(run.stdout.split())
    assert "example: python -m recipes.multi30k_en_de" in run.stdout
