"""The learning-rate schedule of the Transformer and HyboNet papers."""

from dataclasses import dataclass
from typing import Any, List  # noqa: UP035 - fairseq reads typing.List

from fairseq.dataclass import FairseqDataclass
from fairseq.optim.lr_scheduler import FairseqLRScheduler, register_lr_scheduler
from omegaconf import II

from hyptrans.support.options import option


@dataclass
class NoamConfig(FairseqDataclass):
    """Options of the schedule; the factor is ``--lr``."""

    warmup_updates: int = option(4000, "updates during which the rate grows")
    lr: List[float] = II("optimization.lr")  # noqa: UP006, RUF009 - as fairseq reads it


@register_lr_scheduler("noam", dataclass=NoamConfig)
class Noam(FairseqLRScheduler):
    """``lr = factor d^-0.5 min(t^-0.5, t w^-1.5)`` at update ``t``, with warm-up ``w`` updates.

    The width ``d`` is ``--encoder-embed-dim``.

    Source: Vaswani et al. 2017, sec. 5.3; the factor (``--lr``) is 5 in the HyboNet paper.

    Raises:
        ValueError: no width is known, the warm-up is not positive, or there are several rates.
    """

    def __init__(self, cfg: Any, optimizer: Any) -> None:
        super().__init__(cfg, optimizer)
        if len(cfg.lr) > 1:
            raise ValueError(f"--lr-scheduler noam takes one --lr, its factor; got {list(cfg.lr)}")
        if cfg.warmup_updates < 1:
            raise ValueError(f"--warmup-updates must be at least 1, got {cfg.warmup_updates}")
        # the width is in the configuration that contains this one
        model = cfg._get_root().get("model")
        width = getattr(model, "encoder_embed_dim", None)
        if not width:
            raise ValueError(
                "--lr-scheduler noam found no --encoder-embed-dim in this model: take inverse_sqrt"
            )
        self.factor = cfg.lr[0] * width**-0.5
        self.step_update(0)

    def step(self, epoch: int, val_loss: float | None = None) -> float:
        super().step(epoch, val_loss)
        return self.optimizer.get_lr()

    def step_update(self, num_updates: int) -> float:
        # fairseq calls this after an update, for the rate of the next one
        t, warmup = num_updates + 1, self.cfg.warmup_updates
        self.lr = self.factor * min(t**-0.5, t * warmup**-1.5)
        self.optimizer.set_lr(self.lr)
        return self.lr
