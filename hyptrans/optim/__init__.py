"""Optimizers, in torch and geoopt alone."""

from collections.abc import Callable
from typing import Any

import geoopt
import torch


class RiemannianAdam(geoopt.optim.RiemannianAdam):
    """geoopt's optimizer with decoupled weight decay, as fairseq's Adam has it.

    A parameter group may have ``decoupled_weight_decay``, the share of a plain parameter that is
    taken off per unit of learning rate; points have no zero to decay to.
    """

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        with torch.no_grad():
            for group in self.param_groups:
                decay = group.get("decoupled_weight_decay", 0.0)
                for parameter in group["params"] if decay else ():
                    if parameter.grad is not None:
                        parameter.mul_(1 - group["lr"] * decay)
        return super().step(closure)
