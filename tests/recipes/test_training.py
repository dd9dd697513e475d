"""A folder of checkpoints is gone on with only by the command that made it."""

from types import SimpleNamespace

import pytest

from recipes.common import lines, translation


def test_checkpoints_without_a_note_are_refused_and_no_training_counts_as_diverged(tmp_path):
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "checkpoint_last.pt").touch()
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "train_m.log").write_text("FloatingPointError: gradients are Nan/Inf\n")
    run = SimpleNamespace(out=tmp_path, train=lambda model: ["fairseq-train"], threads=1)
    with pytest.raises(translation.AnotherTraining, match="holds a training by another command"):
        lines.train(run, SimpleNamespace(name="m"), tmp_path, SimpleNamespace(settings={}))
