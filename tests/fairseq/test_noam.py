"""The schedule's formula, and where it finds the model's width."""

from argparse import Namespace

import pytest
import torch
from fairseq.dataclass.utils import omegaconf_no_object_check
from fairseq.optim import build_optimizer
from fairseq.optim.lr_scheduler import build_lr_scheduler
from omegaconf import OmegaConf

import hyptrans.fairseq  # noqa: F401 - registers the schedule


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


@pytest.mark.parametrize("update", [1, 50, 100, 101, 5000])
def test_rate_follows_the_formula(update):
    schedule = build(configuration({"encoder_embed_dim": 64}))
    expected = 5 * 64**-0.5 * min(update**-0.5, update * 100**-1.5)
    assert schedule.step_update(update) == pytest.approx(expected, rel=1e-12)
    assert schedule.optimizer.get_lr() == pytest.approx(expected, rel=1e-12)


def test_first_update_has_the_rate_of_the_formula():
    # fairseq sets no other before it
    rate = build(configuration({"encoder_embed_dim": 64})).optimizer.get_lr()
    assert rate == pytest.approx(5 * 64**-0.5 * 100**-1.5, rel=1e-12)


def test_end_of_an_epoch_keeps_the_rate():
    schedule = build(configuration({"encoder_embed_dim": 64}))
    rate = schedule.step_update(70)
    assert schedule.step(1, val_loss=3.0) == rate


def test_width_can_be_given_and_wins():
    schedule = build(configuration({"encoder_embed_dim": 64}, noam_dim=256))
    assert schedule.step_update(100) == pytest.approx(5 * 256**-0.5 * 100**-0.5)


def test_width_is_found_in_a_model_without_dataclass():
    schedule = build(configuration(Namespace(encoder_embed_dim=16)))
    assert schedule.step_update(100) == pytest.approx(5 * 16**-0.5 * 100**-0.5)


@pytest.mark.parametrize("model", [None, {"decoder_embed_dim": 64}])
def test_no_width_is_an_error(model):
    with pytest.raises(ValueError, match=r"found no --encoder-embed-dim .* give --noam-dim"):
        build(configuration(model))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lr": [1.0, 2.0]}, r"takes one --lr, its factor; got \[1.0, 2.0\]"),
        ({"noam_dim": -64}, "--noam-dim must be at least 1, got -64"),
        ({"warmup_updates": 0}, "--warmup-updates must be at least 1, got 0"),
    ],
)
def test_impossible_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        build(configuration({"encoder_embed_dim": 64}, **options))
