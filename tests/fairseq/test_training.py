from types import SimpleNamespace

import pytest
import torch
from fairseq.trainer import Trainer
from omegaconf import OmegaConf
from torch import nn

from hyptrans.fairseq import training
from hyptrans.fairseq.training import check_manifold_flags, first_not_finite
from hyptrans.layers.lorentz import LorentzEmbedding

NOTHING = "the loss, or the norm of all gradients"
POINTS = nn.Sequential(LorentzEmbedding(5, 4, storage="manifold"))


def configuration(**changes):
    cfg = OmegaConf.create(
        {
            "common": {"fp16": False, "bf16": False, "amp": False},
            "optimizer": {"_name": "riemannian_adam"},
            "ema": {"store_ema": False},
            "optimization": {"use_bmuf": False},
            "distributed_training": {"ddp_backend": "pytorch_ddp", "zero_sharding": "none"},
        }
    )
    for path, value in changes.items():
        section, name = path.split("__")
        cfg[section][name] = value
    return cfg


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("common__fp16", True, "--fp16 .* use --amp or float32"),
        ("common__bf16", True, "--bf16 .* use --amp or float32"),
        ("optimizer___name", "adam", "--optimizer adam .* use --optimizer riemannian_adam"),
        ("ema__store_ema", True, "--store-ema averages"),
        ("optimization__use_bmuf", True, "--use-bmuf averages"),
        ("distributed_training__ddp_backend", "slowmo", "--ddp-backend slowmo averages"),
        ("distributed_training__ddp_backend", "fully_sharded", "use --ddp-backend pytorch_ddp"),
        ("distributed_training__zero_sharding", "os", "--zero-sharding rebuilds"),
    ],
)
def test_flags_that_break_the_manifold_are_refused(path, value, message):
    # before the trainer builds an optimizer
    trainer = SimpleNamespace(cfg=configuration(**{path: value}), _model=POINTS)
    with pytest.raises(ValueError, match=message):
        Trainer._build_optimizer(trainer)
    check_manifold_flags(configuration(common__amp=True), POINTS)


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

    def train_step(sample, model, *_):
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


def test_error_names_the_first_layer_that_is_not_finite():
    a, b = Scale(2.0), Scale(3.0)
    assert place(Chain(a=a, b=b)) == NOTHING
    huge = Chain(a=a, b=Scale(3e38), c=Scale(0.5))
    assert place(huge, x=(30.0,)) == "output of layers.b"
    assert place(Chain(a=a, b=Scale(float("nan")))) == "parameter layers.b.factor"
    assert place(Chain(a=a, b=b, c=Ratio())) == "gradient of the output of layers.b"


def test_search_for_the_first_leaves_no_hook_behind_when_it_fails():
    model = Chain(a=Scale(1.0), b=nn.Linear(3, 1))  # does not fit two inputs
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        place(model)
    assert not any(layer._forward_hooks for layer in model.modules())


def test_minus_infinity_from_masking_is_not_an_error():
    assert place(Chain(a=Scale(1.0)), x=(float("-inf"),)) == "gradient of parameter layers.a.factor"
    assert place(Chain(a=Mask(1.0), b=nn.Softmax(-1))) == NOTHING


def test_error_of_a_diverged_training_names_update_and_layer(monkeypatch):
    trainer = SimpleNamespace(get_num_updates=lambda: 6)
    monkeypatch.setattr(training, "first_not_finite", lambda *_: "output of decoder")

    def step(trainer, samples):
        raise FloatingPointError("gradients are Nan/Inf")

    said = "update 7: gradients are Nan/Inf; first not finite: output of decoder; lower --lr"
    with pytest.raises(FloatingPointError, match=said):
        training.name_the_first(step, trainer, [])
