"""What the launchers of all backends are given."""

from typing import NamedTuple

from torch import Tensor

Numbers = tuple[float, ...]


class PointOperands(NamedTuple):
    """What :func:`hyptrans.kernels.operators.points` makes points of, in contiguous tensors."""

    z: Tensor
    """``[..., P, H, d]``."""
    residual: Tensor | None
    """``[..., d]``, where P = H = 1."""
    log_scale: Tensor
    """``[P]``."""
    factor: Tensor | None
    """``[]``: the points of the first projection become ``factor (-t, s)``."""
    numbers: Numbers
    """Least time, 1/c, epsilon, and how much of the residual's time counts (0 or 1)."""

    @property
    def residual_time(self) -> bool:
        """Whether the residual's time counts."""
        return bool(self.numbers[3])


class LossOperands(NamedTuple):
    """What :func:`hyptrans.kernels.loss.smoothed_losses_` reads, in contiguous tensors."""

    logits: Tensor
    """``[N, V]``; their gradients take their place where these are wanted."""
    targets: Tensor
    """``[N]``."""
    of_target: float
    """The target's share of the probability, beside what every token has."""
    of_all: float
    """The share that every token has."""
    gradient: bool
    """Whether gradients are wanted."""
