"""What the study's candidates compute; tests/models has what every architecture must do."""

import torch

from hyptrans.geometry import lorentz
from recipes.common.steps import Step, portable_command
from recipes.study import __main__ as study
from recipes.study import plan
from recipes.study.candidates.lorentz_prenorm import PointNorm, PreNormFeedForward
from tests.geometry.helpers import points


def test_blocks_read_points_of_one_size_and_add_to_the_stream(rng):
    x = points(rng, 5, 8)
    block = PreNormFeedForward(8, 16, c=1.0, dropout=0.0).double()
    read = block.norm(x)
    torch.testing.assert_close(
        read[:, 1:].square().mean(-1), torch.ones(5).double(), atol=1e-4, rtol=0
    )
    scaled = lorentz.lift(7 * x[:, 1:])
    torch.testing.assert_close(PointNorm(8, c=1.0).double()(scaled), read, atol=1e-4, rtol=0)
    inner = block.expand(read).clamp_min(0)
    added = inner @ block.contract.weight.t() + block.contract.bias
    torch.testing.assert_close(block(x), lorentz.lift(x[:, 1:] + added[:, 1:]))


def test_a_candidate_is_trained_with_its_own_plug_in_and_its_command_names_no_machine(tmp_path):
    for model in plan.CANDIDATES:
        folder = study.HERE / "candidates"
        own = (folder / f"{model}.py").exists()
        assert study._user_dir(model) == (str(folder) if own else "hyptrans")
    step = Step("a", ["fairseq-train", "--user-dir", study._user_dir("lorentz_prenorm")], [])
    assert portable_command(step, tmp_path) == ("fairseq-train --user-dir recipes/study/candidates")
