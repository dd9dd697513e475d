"""The space that a model's states lie in, and their conversion to vectors and Lorentz points."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from hyptrans.geometry import lorentz, poincare
from hyptrans.geometry.checks import check_choice, check_curvature
from hyptrans.geometry.precision import at_least_float32

Kind = Literal["euclidean", "lorentz", "poincare"]
KINDS: tuple[Kind, ...] = ("euclidean", "lorentz", "poincare")


@dataclass(frozen=True)
class Space:
    """A space of states: flat, the hyperboloid (time first) or the ball, of curvature ``-c``.

    Raises:
        ValueError: the kind is unknown, or ``c`` is not a finite number above 0.
    """

    kind: Kind
    c: float = 1.0

    def __post_init__(self) -> None:
        check_choice("the kind of a space", self.kind, KINDS)
        check_curvature(self.c)

    def vector_width(self, width: int) -> int:
        """Return the width of :func:`vectors` for points of ``width`` coordinates."""
        return width - 1 if self.kind == "lorentz" else width


def vectors(x: Tensor, space: Space) -> Tensor:
    """Return points as flat vectors: hyperbolic ones by ``log_o``, scaled to curvature -1.

    In either model, the length of a point's vector is its distance from the origin; the ball's
    ``log_o``, which is half as long, is doubled.

    Shapes: ``[..., D]`` -> ``[..., D]``, or ``[..., D - 1]`` from the Lorentz model.
    Range: that of the model's ``log_origin``; any flat vector.
    """
    if space.kind == "lorentz":
        return lorentz.log_origin(x, c=space.c) * space.c**0.5
    if space.kind == "poincare":
        return poincare.log_origin(x, c=space.c) * (2 * space.c**0.5)
    return at_least_float32(x)


def lorentz_points(x: Tensor, space: Space) -> Tensor:
    """Move hyperbolic points to the hyperboloid of curvature -1.

    Shapes: ``[..., D]`` -> ``[..., D]``, or ``[..., D + 1]`` from the ball.
    Range: that of :func:`lorentz.lift` and :func:`poincare.to_lorentz`.

    Raises:
        ValueError: the space is flat.
    """
    if space.kind == "lorentz":
        return lorentz.lift(x[..., 1:] * space.c**0.5)
    if space.kind == "poincare":
        return poincare.to_lorentz(at_least_float32(x) * space.c**0.5)
    raise ValueError("vectors of a flat space are not points of the Lorentz model")


def map_layers(
    function: Callable[[Tensor, Space], Tensor], x: Tensor, spaces: Sequence[Space]
) -> Tensor:
    """Apply a function above to every layer of ``x`` ``[layers, ...]``, each with its own space.

    Range: the function's.
    """
    if len(set(spaces)) == 1:
        return function(x, spaces[0])
    return torch.stack([function(part, space) for part, space in zip(x, spaces, strict=True)])
