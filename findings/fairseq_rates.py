"""Rates of fairseq's schedules, in the order of calls that its Trainer makes."""

import logging

import torch

logging.disable(logging.WARNING)

from fairseq import optim  # noqa: E402
from fairseq.optim import lr_scheduler  # noqa: E402
from omegaconf import OmegaConf  # noqa: E402


class Optimizer(optim.FairseqOptimizer):
    """An optimizer that only holds the rate."""

    def __init__(self):
        self._optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)

    @property
    def optimizer(self):
        return self._optimizer


def rates(name: str, updates: int, **options) -> list[float]:
    """The rates of the first updates at rate 1 after 4 updates of warm-up."""
    settings = {"lr": [1.0], "warmup_updates": 4, "warmup_init_lr": -1.0, **options}
    optimizer = Optimizer()
    schedule = lr_scheduler.LR_SCHEDULER_REGISTRY[name](OmegaConf.create(settings), optimizer)
    schedule.step_begin_epoch(1)
    schedule.step_update(0)
    used = []
    for update in range(1, updates + 1):
        used.append(round(optimizer.get_lr(), 3))
        schedule.step_update(update)
    return used
