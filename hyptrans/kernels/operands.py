"""What the launchers of all backends are given."""

from typing import NamedTuple

from torch import Tensor

Numbers = tuple[float, ...]
Grads = tuple[Tensor | None, ...]
MOST_PROJECTIONS = 4
"""More at a time are left to plain torch; a job's matrices are limited."""
Heads = tuple[int, int, int, int]
"""Sentences, positions, projections and heads."""


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


class WeightOperands(NamedTuple):
    """What :func:`hyptrans.kernels.weights.distance_weights` reads, in contiguous tensors."""

    products: Tensor
    """``[B, H, T, S]``."""
    scale: Tensor
    """``[H]``."""
    allowed: Tensor | None
    """``[B, S]``: 1 at keys that may be looked at, else 0."""
    numbers: Numbers
    """The least excess of a product."""
    integers: tuple[int, int, int, int]
    """T, H, whether no query sees a later key, and whether distances are squared."""


class StepOperands(NamedTuple):
    """What :func:`hyptrans.kernels.hypformer.linear_step` reads."""

    query: Tensor
    """Numbers ``[B, H, 1, d]``, those of a head side by side, as in the next two."""
    key: Tensor
    value: Tensor
    """``[B, H, 1, e]``."""
    key_value: Tensor
    """``[R, H, d, e]``."""
    key_sum: Tensor
    """``[R, H, d]``."""
    order: Tensor | None
    """``[B]``: of which row of the sums a hypothesis is; None for its own."""
    maps: Tensor
    """``[H, d, 1 + e]``."""
    numbers: Numbers
    """What is added to ReLU, and the least sum to divide by."""
