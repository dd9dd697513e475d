"""Which space a vector is a point of, and its way to the spaces that a reader of states needs."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from hyptrans.geometry import lorentz, poincare
from hyptrans.geometry.precision import at_least_float32

Kind = Literal["euclidean", "lorentz", "poincare"]
KINDS: tuple[Kind, ...] = ("euclidean", "lorentz", "poincare")


@dataclass(frozen=True)
class Space:
    """A space of states: flat, the hyperboloid (time first) or the ball, of curvature ``-c``.

    Raises:
        ValueError: an unknown kind, or ``c`` not above 0, or infinite.
    """

    kind: Kind
    c: float = 1.0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"a space is {', '.join(KINDS)}, got {self.kind!r}")
        if not 0 < self.c < math.inf:
            raise ValueError(f"c must be above 0 and finite (the curvature is -c), got {self.c}")

    def vector_width(self, width: int) -> int:
        """Coordinates of :func:`vectors` of points with ``width`` coordinates."""
        return width - 1 if self.kind == "lorentz" else width


def vectors(x: Tensor, space: Space) -> Tensor:
    """Points as flat vectors: tangents ``log_o`` of hyperbolic ones, scaled to curvature -1.

    The length of the vector of a hyperbolic point is its distance from the origin there, in either
    model: the ball's ``log_o``, half of that, is doubled.

    Shapes: ``[..., D]`` -> ``[..., D]``, or ``[..., D - 1]`` from the Lorentz model.
    Range: as of the model's ``log_origin``; any flat vector.
    """
    if space.kind == "lorentz":
        return lorentz.log_origin(x, c=space.c) * space.c**0.5
    if space.kind == "poincare":
        return poincare.log_origin(x, c=space.c) * (2 * space.c**0.5)
    return at_least_float32(x)


def lorentz_points(x: Tensor, space: Space) -> Tensor:
    """Hyperbolic points on the hyperboloid of curvature -1.

    Shapes: ``[..., D]`` -> ``[..., D]``, or ``[..., D + 1]`` from the ball.
    Range: as of :func:`lorentz.lift` and :func:`poincare.to_lorentz`.

    Raises:
        ValueError: the space is flat.
    """
    if space.kind == "lorentz":
        return lorentz.lift(x[..., 1:] * space.c**0.5)
    if space.kind == "poincare":
        return poincare.to_lorentz(at_least_float32(x) * space.c**0.5)
    raise ValueError("vectors of a flat space are no points of the Lorentz model")


def map_layers(
    function: Callable[[Tensor, Space], Tensor], x: Tensor, spaces: Sequence[Space]
) -> Tensor:
    """One of the functions above, on every layer of ``x`` ``[layers, ...]`` with its own space.

    Range: the function's.
    """
    if len(set(spaces)) == 1:
        return function(x, spaces[0])
    return torch.stack([function(part, space) for part, space in zip(x, spaces, strict=True)])
