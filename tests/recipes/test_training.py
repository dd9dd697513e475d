"""A training is done, or gone on with, only where the command that made it is the same."""

import json
from types import SimpleNamespace

import pytest

from hyptrans.support.errors import UserError
from recipes.common import lines, results, translation
from recipes.scan import __main__ as scan
from recipes.study import __main__ as study
from recipes.trees import __main__ as trees
from tests.recipes.scripts import RECIPES


def test_checkpoints_without_a_note_are_refused_and_no_training_counts_as_diverged(tmp_path):
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "checkpoint_last.pt").touch()
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "train_m.log").write_text("FloatingPointError: gradients are Nan/Inf\n")
    run = SimpleNamespace(out=tmp_path, train=lambda model: ["fairseq-train"], threads=1)
    with pytest.raises(translation.AnotherTraining, match="holds a training by another command"):
        lines.train(run, SimpleNamespace(name="m"), tmp_path, SimpleNamespace(settings={}))


def recorded_with(tmp_path, change):
    """Results with the first line of a committed record, its command changed."""
    line = results.read_lines(RECIPES / "trees" / "results.jsonl")[0]
    line["command"] = change(line["command"])
    (tmp_path / "results.jsonl").write_text(json.dumps(line) + "\n")
    return line["name"]


def test_a_line_of_other_settings_does_not_pass_for_a_training_of_the_same_name(tmp_path, capsys):
    name = recorded_with(
        tmp_path, lambda command: command.replace("--dropout 0 ", "--dropout 0.3 ")
    )
    asked = ["--out", str(tmp_path), "--only", name]
    said = f"{name} with --dropout 0.3, and the plan has --dropout 0: choose another --out"
    with pytest.raises(UserError, match=said):
        trees.main(asked)
    trees.main([*asked, "--list"])
    assert f"{name}  recorded with other settings\n" in capsys.readouterr().out


def test_how_a_command_is_written_and_where_it_ran_are_no_settings(tmp_path, capsys):
    name = recorded_with(
        tmp_path, lambda command: f"OMP_NUM_THREADS=1 {command.replace('--lr ', '--lr 9 --lr ')}"
    )
    trees.main(["--out", str(tmp_path), "--list"])
    assert f"{name}  done\n" in capsys.readouterr().out


def test_every_recorded_training_that_a_plan_names_is_done(capsys):
    for recipe, least in ((scan, 8), (study, 85), (trees, 200)):
        recipe.main(["--write-readme", "--list"])
        shown = capsys.readouterr().out
        assert shown.count("  done\n") >= least
        assert "other settings" not in shown
