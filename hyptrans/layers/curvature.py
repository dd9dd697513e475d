"""Curvatures that are learned, and what moves points from one curvature to another."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hyptrans.geometry import lorentz
from hyptrans.geometry.precision import at_least_float32
from hyptrans.kernels.operators import lift


class Curvature(nn.Module):
    """The ``c > 0`` of a space of curvature ``-c``, learned as ``softplus`` of a free number.

    Calling it gives ``c``: a tensor without dimensions where it is learned, else a number.

    Args:
        c: the value, or where learning starts.
        learned: whether it is a parameter.

    Raises:
        ValueError: ``c`` is not above 0.
    """

    def __init__(self, c: float = 1.0, *, learned: bool = True) -> None:
        super().__init__()
        if not c > 0:
            raise ValueError(f"curvature c must be above 0 (the space has -c), got {c}")
        self.start = c
        # the inverse of softplus, in the form that keeps the digits of a small c
        raw = torch.tensor(c + math.log(-math.expm1(-c)))
        self.raw = nn.Parameter(raw) if learned else None

    def forward(self) -> lorentz.Curvature:
        return self.start if self.raw is None else F.softplus(at_least_float32(self.raw))

    def extra_repr(self) -> str:
        return f"c={self.start}, learned={self.raw is not None}"


class InputCurvature:
    """The curvature of a block's input: a parameter of the block before, used but not owned.

    As a module of the block it would have several names in a checkpoint.
    """

    def __init__(self, curvature: Curvature) -> None:
        self.curvature = curvature

    def __call__(self) -> lorentz.Curvature:
        return self.curvature()


def scale_between(c_in: lorentz.Curvature, c_out: lorentz.Curvature) -> lorentz.Curvature:
    """``sqrt(c_in / c_out)``: what a change of curvature multiplies space coordinates by.

    It keeps distances in units of ``1/sqrt(c)``, hence their order. Source: Hypformer eq. 9.
    """
    return (c_in / c_out) ** 0.5


def readjust(
    numbers: Tensor, *, c_in: lorentz.Curvature, c_out: lorentz.Curvature | None = None
) -> Tensor:
    """HRC: the point whose space part is ``f(x_s)``, moved from ``-c_in`` to ``-c_out``.

    The caller applies ``f`` (layer norm, activation, dropout, concatenation, or several of them)
    to the space coordinates; the time follows. Without ``c_out`` the curvature stays.

    Shapes: numbers ``[..., D - 1]`` -> ``[..., D]``. Source: Hypformer eq. 13.
    """
    if c_out is None:
        return lift(numbers, c=c_in)
    return lift(at_least_float32(numbers) * scale_between(c_in, c_out), c=c_out)


class HTC(nn.Module):
    """Hyperbolic transformation with curvatures: ``y_s = sqrt(c_in / c_out) (W x + b)``.

    ``W`` reads the time coordinate too. The space part of the result is all that most users need,
    as an activation, a norm or a sum of heads follows; ``readjust`` makes it a point.

    Shapes: a point ``[..., in_space + 1]`` -> space coordinates ``[..., maps * out_space]``.
    Source: Hypformer eq. 9.

    Args:
        in_space: space coordinates of the input.
        out_space: space coordinates of the output of one map.
        gain: the weights start at Xavier's uniform distribution times this, those that read the
            time at 0.
        maps: number of maps (queries, keys, values) in one product.
    """

    def __init__(self, in_space: int, out_space: int, *, gain: float, maps: int = 1) -> None:
        super().__init__()
        if min(in_space, out_space) < 1:
            raise ValueError(
                "a point needs at least one space coordinate, "
                f"got in_space={in_space}, out_space={out_space}"
            )
        self.weight = nn.Parameter(torch.empty(maps * out_space, in_space + 1))
        self.bias = nn.Parameter(torch.zeros(maps * out_space))
        bound = gain * math.sqrt(6 / (in_space + out_space))
        nn.init.uniform_(self.weight, -bound, bound)
        with torch.no_grad():
            # behind a layer norm every time is about sqrt(in_space): at random weights it would
            # add one and the same large vector to all positions
            self.weight[:, 0] = 0

    def forward(
        self, x: Tensor, *, c_in: lorentz.Curvature, c_out: lorentz.Curvature | None = None
    ) -> Tensor:
        """Map a point; without ``c_out`` the curvature stays."""
        weight: Tensor = self.weight
        bias: Tensor = self.bias
        if c_out is not None:
            # scaling the weights is cheaper than scaling what they give at every position
            scale = scale_between(c_in, c_out)
            weight, bias = weight * scale, bias * scale
        return at_least_float32(F.linear(x.to(weight.dtype), weight, bias))

    def from_space(self, space: Tensor, *, c_in: lorentz.Curvature) -> Tensor:
        """Map the point above ``space``, without building it: the curvature stays.

        Shapes: ``[..., in_space]`` -> ``[..., maps * out_space]``.
        """
        time = (space.square().sum(-1, keepdim=True) + 1 / c_in).sqrt()
        weight = self.weight
        mapped = F.linear(space.to(weight.dtype), weight[:, 1:], self.bias)
        return at_least_float32(mapped) + time * at_least_float32(weight[:, 0])
