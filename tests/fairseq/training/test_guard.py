"""Flags that would lose the manifold are refused by name."""

from types import SimpleNamespace

import pytest
import torch
from fairseq.trainer import Trainer
from omegaconf import OmegaConf

from hyptrans.fairseq.training.guard import check_manifold_flags
from hyptrans.layers.lorentz import LorentzEmbedding


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


REFUSED = [
    ({"common__fp16": True}, "--fp16 .* use --amp or float32"),
    ({"common__bf16": True}, "--bf16 .* use --amp or float32"),
    ({"optimizer___name": "adam"}, "--optimizer adam .* use --optimizer riemannian_adam"),
    ({"ema__store_ema": True}, "--store-ema averages"),
    ({"optimization__use_bmuf": True}, "--use-bmuf averages"),
    ({"distributed_training__ddp_backend": "slowmo"}, "--ddp-backend slowmo averages"),
    ({"distributed_training__ddp_backend": "fully_sharded"}, "use --ddp-backend pytorch_ddp"),
    ({"distributed_training__zero_sharding": "os"}, "--zero-sharding rebuilds"),
]


@pytest.mark.parametrize(("changes", "message"), REFUSED)
def test_flags_that_break_the_manifold_are_refused(changes, message):
    model = torch.nn.Sequential(LorentzEmbedding(5, 4, storage="manifold"))
    with pytest.raises(ValueError, match=message):
        check_manifold_flags(configuration(**changes), model)


@pytest.mark.parametrize("changes", [{}, {"common__amp": True}])
def test_flags_that_keep_the_manifold_are_accepted(changes):
    check_manifold_flags(
        configuration(**changes), torch.nn.Sequential(LorentzEmbedding(5, 4, storage="manifold"))
    )


def test_trainer_is_refused_before_it_builds_an_optimizer():
    trainer = SimpleNamespace(
        cfg=configuration(common__fp16=True),
        _model=torch.nn.Sequential(LorentzEmbedding(5, 4, storage="manifold")),
    )
    with pytest.raises(ValueError, match="--fp16"):
        Trainer._build_optimizer(trainer)
