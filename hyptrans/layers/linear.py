"""The Lorentz linear layer of HyboNet."""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hyptrans.kernels import operators

Residual = Literal["full", "space"]

INITIAL_WEIGHT_BOUND = 0.02
INITIAL_LOG_SCALE = 2.3
"""Times of a fresh layer reach up to exp(2.3) + 1.1 = 11.07 (reference code of HyboNet)."""


class LorentzLinear(nn.Module):
    """Linear map between hyperboloids: a matrix product, then a point made from its numbers.

    ``z = W dropout(h(x)) + b + r``, of which :func:`hyptrans.kernels.operators.points` makes a
    point; ``s`` is its scale of times.

    Multi-head attention needs several points at a time. ``merged_heads`` says that the input is so
    many points side by side. ``split_heads`` cuts the output into so many points of equal width,
    and ``projections`` stacks so many maps (queries, keys, values) into one matrix product; each
    has a scale ``s`` of its own, shared by its heads. Such layers are called by :meth:`heads`.

    Shapes: ``[..., in_width]`` -> ``[..., out_width]``, time included in both.
    Source: HyboNet eq. 3 and 9, in the form of its reference code, which adds the residual to all
    of ``z`` (``residual="full"``) where the paper adds it to the space part alone (``"space"``).

    Args:
        in_width: numbers of the input, time coordinates included.
        out_width: numbers of the output of one projection, time coordinates included.
        c: the hyperboloids have curvature ``-c``.
        relu: apply ReLU to the input before dropout.
        dropout: probability of zeroing an input number while training.
        residual: where a residual or position vector enters.
        merged_heads: number of points that the input is made of.
        split_heads: number of points to cut the output into.
        projections: number of maps in one product; needs ``split_heads``.
    """

    def __init__(
        self,
        in_width: int,
        out_width: int,
        *,
        c: float = 1.0,
        relu: bool = False,
        dropout: float = 0.0,
        residual: Residual = "full",
        merged_heads: int = 1,
        split_heads: int | None = None,
        projections: int = 1,
    ) -> None:
        super().__init__()
        _check_widths(in_width, merged_heads, "in_width")
        _check_widths(out_width, split_heads or 1, "out_width")
        if projections > 1 and split_heads is None:
            raise ValueError(f"projections={projections} needs split_heads; give 1 for one head")
        if residual not in ("full", "space"):
            raise ValueError(f"residual must be 'full' or 'space', got {residual!r}")
        self.c, self.relu, self.dropout, self.residual = c, relu, dropout, residual
        self.in_width, self.out_width = in_width, out_width
        self.merged_heads, self.split_heads, self.projections = (
            merged_heads,
            split_heads,
            projections,
        )
        self.weight = nn.Parameter(torch.empty(projections * out_width, in_width))
        self.bias = nn.Parameter(torch.empty(projections * out_width))
        self.log_scale = nn.Parameter(torch.empty(projections))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """U(-0.02, 0.02) but zero in the columns that read a time, as in the reference code."""
        nn.init.uniform_(self.weight, -INITIAL_WEIGHT_BOUND, INITIAL_WEIGHT_BOUND)
        with torch.no_grad():
            self.weight[:, :: self.in_width // self.merged_heads] = 0
        nn.init.zeros_(self.bias)
        nn.init.constant_(self.log_scale, INITIAL_LOG_SCALE)

    def forward(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        (points,) = self._points(x, residual=residual)
        return points.flatten(-2)

    def heads(self, x: Tensor, query_factor: Tensor | None = None) -> tuple[Tensor, ...]:
        """The points of all heads: for each projection ``[..., split_heads, width of a head]``.

        ``query_factor``: the first projection gives queries, see
        :func:`hyptrans.kernels.operators.points`.
        """
        return self._points(x, query_factor=query_factor)

    def _points(self, x: Tensor, **options: Tensor | None) -> tuple[Tensor, ...]:
        x = operators.relu_dropout(x, self.dropout, relu=self.relu, training=self.training)
        weight = self.weight
        z = F.linear(x.to(weight.dtype), weight, self.bias)
        return operators.points(
            z.view(*z.shape[:-1], self.projections, self.split_heads or 1, -1),
            self.log_scale,
            c=self.c,
            residual_time=self.residual == "full",
            **options,
        )

    def extra_repr(self) -> str:
        return f"{self.in_width}, {self.out_width}, c={self.c}, dropout={self.dropout}"


def _check_widths(width: int, points: int, name: str) -> None:
    if width % points:
        raise ValueError(f"{name}={width} is not divisible by {points} heads")
    if width // points < 2:
        raise ValueError(
            f"{name}={width} gives points of {width // points} coordinates in {points} head(s); "
            "a point needs time and at least one space coordinate"
        )
