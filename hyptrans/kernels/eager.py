"""The operators in plain torch: the reference of the kernels, and where a formula is changed."""

import torch
from torch import Tensor
from torch.nn import functional as F

from hyptrans.geometry import lorentz
from hyptrans.geometry.precision import at_least_float32

TIME_MARGIN = 0.1
"""Keeps every time strictly above the origin's, so that the direction of the space part counts."""


def points(
    z: Tensor,
    log_scale: Tensor,
    *,
    c: float,
    residual: Tensor | None = None,
    residual_time: bool = True,
    query_factor: Tensor | None = None,
) -> Tensor:
    """See :func:`hyptrans.kernels.operators.points`."""
    if residual is not None:
        residual = residual if residual_time else F.pad(residual[..., 1:], (1, 0))
        z = z + residual.unflatten(-1, z.shape[-3:])
    space = z[..., 1:]
    scale = at_least_float32(log_scale).exp()[:, None, None]
    time = z[..., :1].sigmoid() * scale + (c**-0.5 + TIME_MARGIN)
    squared = space.square().sum(-1, keepdim=True)
    ratio = (time.square() - 1 / c) / (squared + lorentz.SPACE_NORM_EPSILON)
    # the time that the space part calls for, which is less than `time` where `squared` is tiny
    made = torch.cat([(squared * ratio + 1 / c).sqrt(), space * ratio.sqrt()], dim=-1)
    if query_factor is None:
        return made
    queries, others = made[..., :1, :, :], made[..., 1:, :, :]
    scaled = lorentz.flip_time(queries) * at_least_float32(query_factor)
    return torch.cat([scaled, others], dim=-3)


def relu_dropout(x: Tensor, p: float, *, relu: bool = False) -> Tensor:
    """See :func:`hyptrans.kernels.operators.relu_dropout`."""
    return F.dropout(F.relu(x) if relu else x, p)
