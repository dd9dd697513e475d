"""One rule of precision for every manifold: float32 or better, whatever the inputs' dtype."""

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

HALF = (torch.float16, torch.bfloat16)
DEFAULT_MAX_RADIUS = 6.0
"""In units of ``1/sqrt(c)``. Beyond it a float32 product of two points has lost three digits: the
distance of two equal points is off by 0.04 at radius 5, by 0.7 at 8."""
LARGEST_MAX_RADIUS = 20.0
"""The square of the product of two times at this radius, 1e34, is still a float32 number."""


def at_least_float32(x: Tensor) -> Tensor:
    """Return ``x`` itself, or ``x`` in float32 where its dtype is shorter than that.

    At time 11 the constraint of the hyperboloid is off by 0.5 in bfloat16 and 0.06 in float16.
    """
    return x.float() if x.dtype in HALF else x


def half_in_force(x: Tensor, weight: Tensor) -> torch.dtype | None:
    """The half precision in which a product of ``x`` and ``weight`` runs, if in any.

    It is autocast's, which leaves float64 alone, or else that of the weight.
    """
    device = x.device.type
    autocast = torch.is_autocast_enabled(device) and x.dtype != torch.float64
    dtype = torch.get_autocast_dtype(device) if autocast else weight.dtype
    return dtype if dtype in HALF else None


def without_autocast(x: Tensor) -> AbstractContextManager[object]:
    """Return a context in which no operation on the device of ``x`` is cast to half precision."""
    device = x.device.type
    # asked first: to enter autocast's context takes ten times as long, and meta tensors have none
    if torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device):
        return torch.autocast(device, enabled=False)
    return nullcontext()


def matrix_product(x: Tensor, y: Tensor) -> Tensor:
    """The matrix product ``x @ y`` in float32 or better, under autocast too.

    Shapes: x ``[..., N, K]``, y ``[..., K, M]`` -> ``[..., N, M]``.
    """
    with without_autocast(x):
        return at_least_float32(x) @ at_least_float32(y)
