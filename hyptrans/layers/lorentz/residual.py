"""How a residual enters a Lorentz linear layer: HyboNet's two forms, and three beside them."""

from typing import Literal, get_args

import torch
from torch import Tensor, nn

from hyptrans.geometry import lorentz
from hyptrans.geometry.precision import at_least_float32
from hyptrans.kernels.hyperboloid import normalize
from hyptrans.kernels.points import points as lorentz_points
from hyptrans.layers.choices import check_choice

Residual = Literal["full", "space", "logit", "sphere", "centroid"]
RESIDUALS: tuple[Residual, ...] = get_args(Residual)

SATURATED = 40.0
"""The sigmoid of this and more is 1, in float64 too."""


class LorentzResidual(nn.Module):
    """The point made of a layer's numbers ``z`` and of a residual ``r``, a point of its width.

    With the time ``T(a) = sigmoid(a) exp(s) + 1/sqrt(c) + 0.1`` of
    :func:`hyptrans.geometry.lorentz.points`:

    * ``full``: the point of ``z + r``. HyboNet's code. As ``r_t`` is far above 0, ``T(z_t + r_t)``
      is nearly its upper bound for every state: the layer normalizes onto a sphere.
    * ``space``: the point of ``(z_t, z_s + r_s)``. HyboNet eq. 7, the paper's own.
    * ``logit``: time ``T(z_t + T^-1(r_t))``, so that ``z_t = 0`` keeps the residual's time where
      this layer can give it; space as above.
    * ``sphere``: time ``T(infinity)``, the same for every state; space as above.
    * ``centroid``: the Lorentz centroid of ``r`` and of the point of ``z``, weighted by 1 and a
      learned ``exp(w)``, which starts at 1. LResNet (He et al. 2024, arXiv 2412.14695).

    ``r`` of the first two may be any vector.

    Shapes: z and r ``[..., D]``, log_scale ``[1]`` -> ``[..., D]``.

    Args:
        form: one of the above.
        c: the hyperboloid has curvature ``-c``.

    Raises:
        ValueError: an unknown form.
    """

    def __init__(self, form: Residual = "full", *, c: float = 1.0) -> None:
        super().__init__()
        check_choice("residual", form, RESIDUALS)
        self.form, self.c = form, c
        self.log_weight = nn.Parameter(torch.zeros(())) if form == "centroid" else None

    def forward(self, z: Tensor, r: Tensor, log_scale: Tensor) -> Tensor:
        z = z[..., None, None, :]
        if self.log_weight is not None:
            (points,) = lorentz_points(z, log_scale, c=self.c)
            weight = at_least_float32(self.log_weight).exp()
            return normalize(r + weight * points.flatten(-2), c=self.c)
        (points,) = lorentz_points(
            z,
            log_scale,
            c=self.c,
            residual=self._with_argument(r, log_scale),
            residual_time=self.form != "space",
        )
        return points.flatten(-2)

    def _with_argument(self, r: Tensor, log_scale: Tensor) -> Tensor:
        """The residual with what is added to ``z_t`` in place of its time."""
        if self.form == "logit":
            argument = lorentz.time_argument(r[..., :1], log_scale, c=self.c)
        elif self.form == "sphere":
            argument = torch.full_like(r[..., :1], SATURATED)
        else:
            return r
        return torch.cat([argument, r[..., 1:]], dim=-1)

    def extra_repr(self) -> str:
        return self.form
