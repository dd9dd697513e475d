from argparse import Namespace

import pytest
import torch
from fairseq.dataclass.utils import omegaconf_no_object_check
from fairseq.optim import build_optimizer
from fairseq.optim.lr_scheduler import build_lr_scheduler
from omegaconf import OmegaConf

import hyptrans.fairseq  # noqa: F401 - registers the schedule

WIDE = {"encoder_embed_dim": 64}


def configuration(model=None, **options):
    cfg = OmegaConf.create(
        {
            "common": {"tpu": False},
            "model": None,
            "optimizer": {"_name": "adam", "lr": [5.0]},
            "lr_scheduler": {"_name": "noam", "warmup_updates": 100, "lr": [5.0], **options},
        }
    )
    if model is not None:
        # fairseq puts a plain namespace there for its own transformer
        with omegaconf_no_object_check():
            cfg.model = model
    return cfg


def build(cfg):
    parameter = torch.nn.Parameter(torch.zeros(1))
    return build_lr_scheduler(cfg.lr_scheduler, build_optimizer(cfg.optimizer, [parameter]))


@pytest.mark.parametrize(
    ("model", "width"),
    [
        (WIDE, 64),
        # of a model without a dataclass
        (Namespace(encoder_embed_dim=16), 16),
    ],
)
def test_rate_follows_the_formula(model, width):
    schedule = build(configuration(model))
    # fairseq sets no other before the first update
    rates = {1: schedule.optimizer.get_lr()}
    for update in (2, 50, 100, 101, 5000):
        # after an update fairseq sets the rate of the next one
        rates[update] = schedule.step_update(update - 1)
        assert schedule.optimizer.get_lr() == rates[update]
    for update, rate in rates.items():
        expected = 5 * width**-0.5 * min(update**-0.5, update * 100**-1.5)
        assert rate == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (None, {}, r"found no --encoder-embed-dim .* take inverse_sqrt"),
        ({"decoder_embed_dim": 64}, {}, r"found no --encoder-embed-dim .* take inverse_sqrt"),
        (WIDE, {"lr": [1.0, 2.0]}, r"takes one --lr, its factor; got \[1.0, 2"),
        (WIDE, {"warmup_updates": 0}, "--warmup-updates must be at least 1, "),
    ],
)
def test_impossible_models_and_options_are_refused(model, options, message):
    with pytest.raises(ValueError, match=message):
        build(configuration(model, **options))
