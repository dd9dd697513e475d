"""Riemannian Adam as a fairseq optimizer."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, List  # noqa: UP035 - fairseq reads typing.List

import geoopt
from fairseq.dataclass import FairseqDataclass
from fairseq.optim import FairseqOptimizer, register_optimizer
from omegaconf import II
from torch import nn

from hyptrans.fairseq.literals import literal
from hyptrans.geometry.precision import DEFAULT_MAX_RADIUS, LARGEST_MAX_RADIUS
from hyptrans.optim import RiemannianAdam
from hyptrans.support.options import option


@dataclass
class RiemannianAdamConfig(FairseqDataclass):
    """Options of the optimizer; the first three are those of fairseq's Adam."""

    adam_betas: Any = option((0.9, 0.999), "betas for Adam optimizer")
    adam_eps: float = option(1e-8, "epsilon for Adam optimizer")
    weight_decay: float = option(0.0, "decoupled weight decay of plain parameters")
    embedding_lr_scale: float = option(
        1.0,
        "rate of manifold parameters in units of --lr; sqrt(--encoder-embed-dim) makes "
        "their coordinates move as far as Adam would move them",
    )
    max_radius: float = option(
        DEFAULT_MAX_RADIUS,
        "manifold parameters stay this near the origin (unit: 1/sqrt(curvature))",
    )
    lr: List[float] = II("optimization.lr")  # noqa: UP006, RUF009 - as fairseq reads it


@register_optimizer("riemannian_adam", dataclass=RiemannianAdamConfig)
class FairseqRiemannianAdam(FairseqOptimizer):
    """Riemannian Adam for manifold parameters, Adam for all others.

    Raises:
        ValueError: an option is out of range.
    """

    def __init__(self, cfg: Any, params: Iterable[nn.Parameter]) -> None:
        super().__init__(cfg)
        if not 0 < cfg.embedding_lr_scale < math.inf:
            raise ValueError(
                f"--embedding-lr-scale must be above 0 and finite, got {cfg.embedding_lr_scale}"
            )
        if not 0 < cfg.max_radius <= LARGEST_MAX_RADIUS:
            raise ValueError(
                f"--max-radius must be above 0 and at most {LARGEST_MAX_RADIUS}, as squares of "
                f"products of points farther out overflow in float32, got {cfg.max_radius}"
            )
        params = list(params)
        points = [p for p in params if isinstance(p, geoopt.ManifoldParameter)]
        if not points:
            _check_unused(cfg)
        plain = [p for p in params if not isinstance(p, geoopt.ManifoldParameter)]
        for point in points:
            point.manifold.max_radius = cfg.max_radius
        groups = [
            {"params": plain, "lr_scale": 1.0, "weight_decay": cfg.weight_decay},
            {"params": points, "lr_scale": cfg.embedding_lr_scale},
        ]
        groups = [group for group in groups if group["params"]]
        self._optimizer = RiemannianAdam(groups, **self.optimizer_config)
        self._settings = [
            {name: value for name, value in group.items() if name != "params"}
            for group in self.param_groups
        ]
        self.set_lr(self.optimizer_config["lr"])

    @property
    def supports_flat_params(self) -> bool:
        """Return whether ``--fp16`` may flatten all parameters into one; points may not be."""
        return not any(isinstance(parameter, geoopt.ManifoldParameter) for parameter in self.params)

    @property
    def optimizer_config(self) -> dict[str, Any]:
        betas = tuple(literal(str(self.cfg.adam_betas)))
        return {"lr": self.cfg.lr[0], "betas": betas, "eps": self.cfg.adam_eps}

    def get_lr(self) -> float:
        group = self.param_groups[0]
        return group["lr"] / group["lr_scale"]

    def set_lr(self, lr: float) -> None:
        for group in self.param_groups:
            group["lr"] = lr * group["lr_scale"]

    def load_state_dict(
        self, state_dict: dict[str, Any], optimizer_overrides: dict[str, Any] | None = None
    ) -> None:
        """Load moments and rate; other options come from the command line, not the checkpoint."""
        super().load_state_dict(state_dict)
        # the plateau schedule stores its rate nowhere else
        rate = (optimizer_overrides or {}).get("lr", self.get_lr())
        for group, settings in zip(self.param_groups, self._settings, strict=True):
            group.update(settings | (optimizer_overrides or {}))
        self.set_lr(rate)


def _check_unused(cfg: Any) -> None:
    """Refuse options for points that a model without points was given."""
    defaults = RiemannianAdamConfig()
    for name in ("embedding_lr_scale", "max_radius"):
        if getattr(cfg, name) != getattr(defaults, name):
            raise ValueError(
                f"--{name.replace('_', '-')} acts on points, and no parameter of this model is "
                "one: leave it out, or train with --embedding-storage manifold"
            )
