"""A training whose gradients are no longer finite: what is said, kept, and run again."""

import re
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from hyptrans.commands.replay import _take_no_overflow
from hyptrans_startup.errors import UserError
from hyptrans_startup.training import divergence
from hyptrans_startup.training.divergence import SAMPLES, first_not_finite
from tests.startup.conftest import TINY

SENTENCE = re.compile(
    r"error: gradients are NaN at update (\d+): lower --lr or (.*) \(first not finite: (.*)\); "
    r"hyptrans replay (.*/crash.pt) runs the very batch again"
)


def test_what_is_wrong_with_finite_gradients_is_told_as_fairseq_says_it(monkeypatch):
    said = "Fatal error: gradients are inconsistent between workers. Try --ddp-backend=legacy_ddp."

    def train_step(trainer, samples):
        try:
            raise FloatingPointError(f"{said}\n-----\ngrad_norm across the workers")
        except FloatingPointError:
            divergence.nan_detector_fails(None)

    trainer = SimpleNamespace(get_num_updates=lambda: 6)
    monkeypatch.setattr(divergence, "first_not_finite", lambda *_: divergence.ALL_FINITE)
    with pytest.raises(UserError) as caught:
        divergence.gradients_not_finite(train_step, trainer, [])
    assert str(caught.value) == f"update 7: {said}"


@pytest.mark.slow
def test_nan_is_told_in_one_sentence_and_its_batch_runs_again(data, work, fork):
    exploding = ["--lr=1e30", "--save-dir=nan", "--clip-norm=5"]
    done = fork("fairseq-train", data, *TINY, *exploding, cwd=work, check=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stdout + done.stderr
    update, advice, place, file = SENTENCE.search(done.stderr.splitlines()[-1]).groups()
    assert advice == "--clip-norm, which is 5"
    again = fork("hyptrans", "replay", file, cwd=work, check=False)
    assert again.returncode == 2
    assert again.stderr.splitlines()[-1] == (
        f"error: update {update} of {file}: gradients are NaN here too (first not finite: "
        f"{place}); go on from an earlier checkpoint with a lower --lr or --clip-norm"
    )

    stored = torch.load(work / file)
    stored["model"] = {name: torch.zeros_like(x) for name, x in stored["model"].items()}
    torch.save(stored, work / "mended.pt")
    again = fork("hyptrans", "replay", "mended.pt", cwd=work)
    assert again.stdout == f"update {update} of mended.pt: gradients are finite here\n"


def test_file_without_a_batch_is_refused(checkpoint, work, fork):
    done = fork("hyptrans", "replay", checkpoint, cwd=work, check=False)
    assert done.returncode == 2
    assert f"error: {checkpoint} holds no batch" in done.stderr


@pytest.mark.parametrize("name", ["plugin", pytest.param("hyptrans", marks=pytest.mark.slow)])
def test_replay_imports_nothing_that_its_file_names(name, checkpoint, work, fork, tmp_path):
    plugin, trusted = tmp_path / name, tmp_path / "trusted"
    for folder in (plugin, trusted):
        folder.mkdir()
        ran = folder / "ran"
        (folder / "__init__.py").write_text(f"open({str(ran)!r}, 'w').close()\n")
    stored = torch.load(work / checkpoint, weights_only=False)
    stored["cfg"]["common"]["user_dir"] = str(plugin)
    stored["extra_state"][SAMPLES] = [{}]
    torch.save(stored, tmp_path / "crash.pt")
    done = fork("hyptrans", "replay", tmp_path / "crash.pt", cwd=work, check=False)
    assert done.returncode != 0
    if name == "plugin":
        assert "is of a training with --user-dir plugin: name it here too" in done.stderr
        # what is named is imported, as by fairseq-train
        words = ["replay", tmp_path / "crash.pt", "--user-dir", trusted]
        fork("hyptrans", *words, cwd=work, check=False)
        assert (trusted / "ran").exists()
    assert not (plugin / "ran").exists()


@pytest.mark.parametrize(
    ("said", "given", "error", "words"),
    [
        ("42 < 42", {}, UserError, "the weights are damaged"),
        ("6 < 6", {"constraints": [1]}, UserError, "constraints of a sentence do not fit"),
        ("5 < 6", {}, AssertionError, "5 < 6"),
        ("other", {}, AssertionError, "other"),
    ],
)
def test_search_that_ends_without_a_translation_says_why(said, given, error, words):
    def generate(models, **given):
        raise AssertionError(said)

    with pytest.raises(error, match=words):
        divergence.search_without_scores(generate, [], **given)


class Ratio(nn.Module):
    """x / x, whose gradient is not finite at 0 while its value may be replaced."""

    def forward(self, x):
        return torch.where(x == 0, torch.ones_like(x), x / x)


class Scale(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(factor))

    def forward(self, x):
        return {"out": [self.factor * x, None]}


class Mask(Scale):
    def forward(self, x):
        return super().forward(x)["out"][0].masked_fill(x == 0, float("-inf"))


class Chain(nn.Module):
    def __init__(self, **layers):
        super().__init__()
        self.layers = nn.ModuleDict(layers)

    def forward(self, x):
        for layer in self.layers.values():
            x = layer(x)
            x = x["out"][0] if isinstance(x, dict) else x
        return x


def place(model, x=(1.0, 0.0)):
    """What is found in a training of the sum of what a model makes of x."""

    def train_step(sample, model, *_, **__):
        model(sample).sum().backward()

    trainer = SimpleNamespace(
        model=model,
        get_model=lambda: model,
        zero_grad=model.zero_grad,
        task=SimpleNamespace(train_step=train_step),
        _prepare_sample=lambda sample: (sample, False),
        _set_seed=lambda: None,
        criterion=None,
        optimizer=None,
        get_num_updates=lambda: 3,
    )
    return first_not_finite(trainer, [torch.tensor(x)])


def test_first_layer_that_is_not_finite_is_named():
    a, b = Scale(2.0), Scale(3.0)
    assert place(Chain(a=a, b=b)) == "the loss, or the sum of all gradients"
    huge = Chain(a=a, b=Scale(3e38), c=Scale(0.5))
    assert place(huge, x=(30.0,)) == "output of layers.b"
    assert place(Chain(a=a, b=Scale(float("nan")))) == "parameter layers.b.factor"
    assert place(Chain(a=a, b=b, c=Ratio())) == "gradient of the output of layers.b"


def test_parameter_whose_finite_gradients_have_an_infinite_norm_is_named():
    steep = Chain(a=Scale(1e-28), b=Scale(1e28))
    assert (
        place(steep)
        == "the norm of all gradients, as that of parameter layers.a.factor reaches 1e+28"
    )


def test_what_is_masked_by_minus_infinity_is_no_error():
    assert place(Chain(a=Scale(1.0)), x=(float("-inf"),)) == "gradient of parameter layers.a.factor"
    masked = Chain(a=Mask(1.0), b=nn.Softmax(-1))
    assert place(masked) == "the loss, or the sum of all gradients"


@pytest.mark.slow
def test_training_that_learns_nothing_says_so_in_its_log(data, work, fork):
    flags = ["--user-dir=hyptrans", "--lr=0", "--max-update=500", "--disable-validation"]
    flags += ["--criterion=label_smoothed_cross_entropy", "--no-save"]
    done = fork("fairseq-train", data, *TINY, *flags, cwd=work)
    assert done.stdout.count("nothing is learned: after 500 updates the loss") == 1


def test_half_precision_fails_in_a_replay_where_it_would_lower_its_scale():
    from fairseq.optim.dynamic_loss_scaler import DynamicLossScaler

    scaler = DynamicLossScaler(init_scale=128)
    _take_no_overflow(SimpleNamespace(scaler=scaler), {"last_optimizer_state": {"loss_scale": 2.0}})
    assert scaler.loss_scale == 2.0
    scaler.check_overflow(1.0)
    with pytest.raises(FloatingPointError):
        scaler.check_overflow(float("nan"))
    _take_no_overflow(SimpleNamespace(), {})
