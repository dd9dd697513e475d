"""Label-smoothed cross entropy with a term that pushes the states of different tokens apart."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from fairseq.criterions import register_criterion
from fairseq.criterions.label_smoothed_cross_entropy import (
    LabelSmoothedCrossEntropyCriterion,
    LabelSmoothedCrossEntropyCriterionConfig,
)
from torch import Tensor

from hyptrans.geometry import poincare
from hyptrans.layers.hvt import PoincareLogits
from hyptrans.support.options import option

SAMPLED_PAIRS = 4096
"""Pairs of positions drawn from a batch, so that the cost does not grow with its square."""


@dataclass
class GeodesicConfig(LabelSmoothedCrossEntropyCriterionConfig):
    """Options of the criterion."""

    geodesic_regularization: float = option(
        0.0,
        "weight, per target token, of mean exp(-distance) between the decoder's points "
        "at positions with different target tokens, while training (hvt only)",
    )


@register_criterion("label_smoothed_cross_entropy_with_geodesic", dataclass=GeodesicConfig)
class GeodesicCriterion(LabelSmoothedCrossEntropyCriterion):
    """fairseq's criterion plus ``lambda mean exp(-d(x_i, x_j))`` over pairs of target positions.

    The pairs have different target tokens; ``x`` are the last points of a decoder on the Poincare
    ball and ``d`` is the geodesic distance. Validation losses leave the term out, so that they stay
    comparable with those of fairseq's criterion.

    Source: HVT eq. 33, whose ``+ lambda mean d`` would pull together the points that its text wants
    apart; its negative is unbounded, whereas ``exp(-d)`` lies between 0 and 1.

    Raises:
        ValueError: lambda, ``geodesic_regularization``, is below 0 or not finite.
    """

    def __init__(
        self,
        task: Any,
        sentence_avg: bool,
        label_smoothing: float,
        ignore_prefix_size: int = 0,
        report_accuracy: bool = False,
        geodesic_regularization: float = 0.0,
    ) -> None:
        super().__init__(task, sentence_avg, label_smoothing, ignore_prefix_size, report_accuracy)
        if not 0 <= geodesic_regularization < math.inf:
            raise ValueError(
                "--geodesic-regularization must be at least 0 and finite, "
                f"got {geodesic_regularization}"
            )
        self.geodesic_regularization = geodesic_regularization

    def forward(self, model: Any, sample: dict[str, Any], reduce: bool = True) -> Any:
        if self.geodesic_regularization and model.training:
            inputs = {**sample["net_input"], "return_all_hiddens": True}
            sample = {**sample, "net_input": inputs}
        return super().forward(model, sample, reduce)

    def compute_loss(
        self, model: Any, net_output: Any, sample: dict[str, Any], reduce: bool = True
    ) -> tuple[Tensor, Tensor]:
        loss, nll_loss = super().compute_loss(model, net_output, sample, reduce)
        if self.geodesic_regularization and model.training:
            term = self._geodesic_term(model, net_output, sample["target"])
            # fairseq divides by the number of tokens or sentences, and sums unreduced losses
            size = sample["target"].size(0) if self.sentence_avg else sample["ntokens"]
            loss = loss + self.geodesic_regularization * term * size / loss.numel()
        return loss, nll_loss

    def _geodesic_term(self, model: Any, net_output: Any, target: Tensor) -> Tensor:
        logits = getattr(model.decoder, "logits", None)
        if not isinstance(logits, PoincareLogits):
            raise ValueError(
                "--geodesic-regularization needs an architecture whose states are points of the "
                "Poincare ball: use --arch hvt_…, or leave it out"
            )
        real = target != self.padding_idx
        points = net_output[1]["inner_states"][-1].transpose(0, 1)[real]
        return geodesic_term(points, target[real], c=logits.table.c)


def geodesic_term(points: Tensor, tokens: Tensor, *, c: float) -> Tensor:
    """Return mean ``exp(-d)`` over sampled pairs of points with different tokens, 0 without pairs.

    Shapes: points ``[N, D]`` of the ball, tokens ``[N]`` -> ``[]``. Range: ``[0, 1]``.
    """
    # in half precision, the mean alone would lose the effect of an update
    points = points.to(torch.promote_types(points.dtype, torch.float32))
    if not len(points):
        return points.sum()
    first, second = torch.randint(len(points), (2, SAMPLED_PAIRS), device=points.device)
    closeness = torch.exp(-poincare.distance(points[first], points[second], c=c))
    different = tokens[first] != tokens[second]
    return (closeness * different).sum() / different.sum().clamp_min(1)
