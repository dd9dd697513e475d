"""The command of a training, out of its checkpoint."""

import shlex

import pytest

from hyptrans.inference import checkpoint
from hyptrans.inference.sharing import training_command


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
