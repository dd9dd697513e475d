"""The operators that layers are made of: a choice of backend, and nothing else."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from hyptrans.geometry import lorentz
from hyptrans.geometry.precision import at_least_float32
from hyptrans.kernels import functions
from hyptrans.kernels.backend import Part, chosen, launcher
from hyptrans.kernels.operands import MOST_PROJECTIONS

FEW_QUERIES = 8
"""More at a time make torch's fused attention the faster one."""


def points(
    z: Tensor,
    log_scale: Tensor,
    *,
    c: float,
    residual: Tensor | None = None,
    residual_time: bool = True,
    query_factor: Tensor | None = None,
) -> tuple[Tensor, ...]:
    """:func:`hyptrans.geometry.lorentz.points` of several projections: HyboNet eq. 3.

    With ``query_factor`` ``f`` the points of the first projection come as ``f (-t, s)``, whose dot
    products are ``f`` times the Lorentz products.

    Shapes: z ``[..., P, H, d]``, log_scale ``[P]``, query_factor ``[]`` -> ``P`` tensors
    ``[..., H, d]``; residual ``[..., d]`` is added to ``z``, of one projection and one head.

    ``residual_time``: whether the residual's time coordinate is added too.

    Raises:
        ValueError: log scales of another number than the projections', or a residual of several
            heads.
    """
    projections = z.size(-3)
    if log_scale.dim() != 1 or log_scale.size(0) != projections:
        shape = tuple(log_scale.shape)
        raise ValueError(f"{projections} projections need as many log scales, got {shape}")
    z, log_scale, residual, query_factor = _of_one_dtype(z, log_scale, residual, query_factor)
    if residual is not None:
        if projections * z.size(-2) != 1:
            shape = tuple(z.shape[-3:-1])
            raise ValueError(f"a residual needs one projection of one head, got {shape}")
        if residual.shape != (wanted := (*z.shape[:-3], z.size(-1))):
            residual = residual.expand(wanted)
    if query_factor is not None and query_factor.dim():
        query_factor = query_factor.reshape(())
    if projections <= MOST_PROJECTIONS and (backend := chosen(z)) != "eager":
        return functions.points(backend, z, log_scale, residual, query_factor, c, residual_time)
    return plain_points(
        z, log_scale, c=c, residual=residual, residual_time=residual_time, query_factor=query_factor
    ).unbind(-3)


def plain_points(
    z: Tensor,
    log_scale: Tensor,
    *,
    c: float,
    residual: Tensor | None,
    residual_time: bool,
    query_factor: Tensor | None,
) -> Tensor:
    """:func:`points` in plain torch, stacked as ``[..., P, H, d]``."""
    if residual is not None:
        residual = residual if residual_time else F.pad(residual[..., 1:], (1, 0))
        z = z + residual.unflatten(-1, z.shape[-3:])
    made = lorentz.points(z, log_scale[:, None, None], c=c)
    if query_factor is None:
        return made
    queries, others = made[..., :1, :, :], made[..., 1:, :, :]
    return torch.cat([lorentz.flip_time(queries) * query_factor, others], dim=-3)


def normalize(v: Tensor, *, c: lorentz.CurvatureLike = 1.0) -> Tensor:
    """:func:`hyptrans.geometry.lorentz.normalize`: scale time-like vectors onto the hyperboloid."""
    v = at_least_float32(v)
    if (backend := chosen(v, c=c)) != "eager":
        return functions.normalize(backend, v, as_scalar(c))
    return lorentz.normalize(v, c=c)


def lift(space: Tensor, *, c: lorentz.CurvatureLike = 1.0) -> Tensor:
    """:func:`hyptrans.geometry.lorentz.lift`: the points above space coordinates."""
    space = at_least_float32(space)
    if (backend := chosen(space, c=c)) != "eager":
        return functions.lift(backend, space, as_scalar(c))
    return lorentz.lift(space, c=c)


def relu_dropout(x: Tensor, p: float, *, relu: bool = False, training: bool = True) -> Tensor:
    """Dropout with probability ``p`` in training, after ReLU where asked for.

    The kernels draw one number of torch's generator as a seed and keep or drop by a hash of it and
    the place, so that no mask is stored; the numbers kept differ from those of torch's dropout.

    Raises:
        ValueError: ``p`` is not between 0 and 1.
    """
    if not 0 <= p <= 1:
        raise ValueError(f"a dropout probability must be between 0 and 1, got {p}")
    if not training or p == 0:
        return F.relu(x) if relu else x
    backend = chosen(x, "dropout")
    if backend == "eager" or p == 1:
        return F.dropout(F.relu(x) if relu else x, p)
    return functions.relu_dropout(backend, x, p, relu, functions.drawn_seed())


def in_one_pass(query: Tensor, part: Part = "points") -> bool:
    """Whether all of attention is one operator for queries ``[B, H, T, d]``, and the faster way.

    It is on the CPU, for a few queries of each hypothesis, where no gradient is wanted. The part
    names the operator: :func:`centroids`, :func:`hyptrans.kernels.klein.midpoints`,
    :func:`hyptrans.kernels.hypformer.linear_step`.
    """
    few = query.size(2) <= FEW_QUERIES
    return few and not torch.is_grad_enabled() and chosen(query, part) == "numba"


def centroids(
    query: Tensor, keys: Tensor, values: Tensor, places: Tensor, *, c: lorentz.CurvatureLike
) -> Tensor:
    """:func:`hyptrans.layers.lorentz.mix.lorentz_mix` of keys and values at places in a table.

    Queries and table are read in one pass and where they lie, see :func:`in_one_pass`.

    Shapes: query ``[B, H, T, d]``, keys and values ``[number of places, H, d]``, places ``[B, S]``
    (-1 where nobody looks) -> ``[B, H, T, d]``.

    Raises:
        ValueError: places of another number of rows than the queries'.
    """
    check_places(query, places)
    out = query.new_empty(query.size(0), query.size(2), query.size(1), values.size(-1))
    launcher("numba").centroids(query, keys, values, places, c, out)
    return out.transpose(1, 2)


def check_places(query: Tensor, places: Tensor) -> None:
    """Refuse no places, or those ``[B', S]`` of more or fewer rows than queries ``[B, H, T, d]``.

    Raises:
        ValueError: they are.
    """
    if len(places) != len(query):
        raise ValueError(f"{len(query)} rows of queries need as many of places, got {len(places)}")
    if not places.size(-1):
        raise ValueError("attention needs at least one place to look at, got none")


def _of_one_dtype(first: Tensor, *others: Tensor | None) -> tuple[Any, ...]:
    """All in float32, or in float64 where one is."""
    tensors = (first, *others)
    given = [x.dtype for x in tensors if x is not None]
    if given.count(torch.float32) == len(given):
        return tensors
    dtype = torch.float64 if torch.float64 in given else torch.float32
    return tuple(None if x is None else x.to(dtype) for x in tensors)


def as_scalar(c: lorentz.CurvatureLike) -> lorentz.CurvatureLike:
    """A curvature without dimensions, as kernels give its gradient; one number is all it holds."""
    return c.reshape(()) if isinstance(c, Tensor) else c
