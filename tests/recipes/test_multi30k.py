import pytest

from hyptrans.support.errors import UserError
from recipes.multi30k_en_de.__main__ import main
from tests.recipes.scripts import run_script


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "--data is needed: a folder with Multi30k task 1"),
        (["--data", "there"], "--data: there/train.de and train.de.gz are both missing"),
        (["--vocab-size", "0"], "at least 1 is needed: --vocab-size 0"),
    ],
)
def test_what_is_missing_is_told_before_any_work(tmp_path, monkeypatch, words, message):
    monkeypatch.delenv("HYPTRANS_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "train.en").write_text("a\n", encoding="utf-8")
    with pytest.raises(UserError, match=f"^{message}"):
        main([*words, "--out", "out"])
    assert not (tmp_path / "out").exists()


def test_data_are_taken_from_the_folder_that_the_variable_names(tmp_path, monkeypatch):
    monkeypatch.setenv("HYPTRANS_DATA", str(tmp_path))
    with pytest.raises(UserError, match=f"^--data: {tmp_path}/multi30k_en_de/train.en and "):
        main(["--out", str(tmp_path / "out")])


def test_help_names_units_defaults_and_an_example():
    run = run_script("multi30k_en_de", "--help")
    assert run.returncode == 0
    assert "optimizer steps of each training (default: 3000)" in " ".join(run.stdout.split())
    assert "example: python -m recipes.multi30k_en_de" in run.stdout
