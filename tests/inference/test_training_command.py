"""The command of a training, out of its checkpoint."""

import shlex

import pytest
from omegaconf import OmegaConf

from hyptrans.fairseq import checkpoint, training_command


@pytest.mark.parametrize(
    ("norm", "written"), [(0.00034567891, "0.00034567891"), (2.0, "2"), (1e-5, "1e-05")]
)
def test_numbers_are_written_whole(make, norm, written):
    cfg = checkpoint.read_state(make("hybonet"))["cfg"]
    cfg["optimization"]["clip_norm"] = norm
    words = shlex.split(training_command.of(cfg))
    found = words[words.index("--clip-norm") + 1]
    assert found == written
    assert float(found) == norm


def test_what_another_plug_in_brought_is_written_as_it_is(make):
    cfg = checkpoint.read_state(make("hybonet"))["cfg"]
    cfg = OmegaConf.create(OmegaConf.to_container(cfg, enum_to_str=True))
    cfg.criterion = {"_name": "loss_of_mine", "temperature": 0.5, "sharpen": False, "blur": True}
    cfg.task._name = "task_of_mine"
    words = shlex.split(training_command.of(cfg))
    assert words[words.index("--criterion") + 1] == "loss_of_mine"
    assert words[words.index("--temperature") + 1] == "0.5"
    assert words[words.index("--task") + 1] == "task_of_mine"
    assert ("--blur" in words, "--sharpen" in words) == (True, False)
