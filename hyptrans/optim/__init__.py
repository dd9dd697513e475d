"""Optimizers; they need torch and geoopt only."""

from collections.abc import Callable
from typing import Any

import geoopt
import torch
from torch import Tensor

from hyptrans.geometry import lorentz, riemannian
from hyptrans.layers.manifold import StableLorentz


class RiemannianAdam(torch.optim.AdamW):
    """Riemannian Adam for points of ``StableLorentz``, torch's AdamW for all other parameters.

    Steps of points are computed in float64. Their second moment is one squared norm per point,
    taken from the gradient before its projection: the projected gradient has lost its norm from
    radius 8 on in float32 and from radius 20 on in float64.

    Args:
        weight_decay: decoupled, for plain parameters only; points have no zero to decay to.

    Raises:
        ValueError: a parameter is a point of another manifold.

    Source: Bécigneul and Ganea 2019, algorithm 1.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        super().add_param_group(param_group)
        for parameter in self.param_groups[-1]["params"]:
            manifold = getattr(parameter, "manifold", None)
            if manifold is not None and not isinstance(manifold, StableLorentz):
                raise ValueError(
                    f"RiemannianAdam moves points of StableLorentz, and a parameter is a point of "
                    f"{type(manifold).__name__}: use geoopt.optim.RiemannianAdam for it"
                )

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        gradients = [
            (group, parameter, parameter.grad)
            for group in self.param_groups
            for parameter in group["params"]
            if isinstance(parameter, geoopt.ManifoldParameter) and parameter.grad is not None
        ]
        for _, point, _ in gradients:
            point.grad = None  # AdamW skips parameters without a gradient
        # torch wraps AdamW's step in hooks once one is made; this class's step already has them
        step = torch.optim.AdamW.step
        (step.__wrapped__ if hasattr(step, "hooked") else step)(self)  # type: ignore[attr-defined]
        for group, point, gradient in gradients:
            point.grad = gradient
            self._move(group, point, gradient)
        return loss

    def _move(
        self, group: dict[str, Any], point: geoopt.ManifoldParameter, gradient: Tensor
    ) -> None:
        state, manifold = self.state[point], point.manifold
        if not state:
            state["step"] = torch.tensor(0.0)
            state["exp_avg"] = torch.zeros_like(point)
            state["exp_avg_sq"] = torch.zeros_like(point)
        state["step"] += 1
        step = int(state["step"])
        x = lorentz.lift(point[..., 1:].double(), c=manifold.c)
        v = lorentz.flip_time(gradient.double())
        # rounding to float32 moved its time off the tangent space; projecting anew would amplify it
        momentum = riemannian.tangent_above(x, state["exp_avg"][..., 1:].double())
        momentum = torch.lerp(manifold.proju(x, v), momentum, group["betas"][0])
        squared = state["exp_avg_sq"].double()
        squared = torch.lerp(manifold.component_inner(x, v), squared, group["betas"][1])
        first, second = (1 - beta**step for beta in group["betas"])
        direction = momentum / first / ((squared / second).sqrt() + group["eps"])
        y = manifold.expmap(x, -group["lr"] * direction, norm_tan=False)
        momentum = manifold.transp(x, y, momentum)
        point.copy_(y)
        state["exp_avg"].copy_(momentum)
        state["exp_avg_sq"].copy_(squared)
