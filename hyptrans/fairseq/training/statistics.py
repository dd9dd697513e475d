"""Log, in every training, how far points are off their manifold and from its origin."""

from collections.abc import Iterable
from typing import Any

import geoopt
import torch
from fairseq.logging import metrics
from fairseq.trainer import Trainer
from torch import Tensor

from hyptrans.fairseq.around import Function, around
from hyptrans.geometry import lorentz
from hyptrans.geometry.space import Space, vectors


class PointStatistics:
    """Watches the forward passes of those updates that end with a log line.

    It logs the largest values among the states of all layers, padding included, and the points that
    are parameters: ``drift`` (:func:`hyptrans.geometry.lorentz.violation`; a ball has none) and
    ``radius``, the distance from the origin in units of ``1 / sqrt(curvature)``.

    Args:
        model: its encoder names the space of its states; otherwise nothing is logged.
        every: number of updates between two measurements.
    """

    def __init__(self, model: Any, every: int) -> None:
        self.every = every
        self._model = model
        self._space_of: Any = getattr(getattr(model, "encoder", None), "space_of", None)
        self._hooks: list[Any] = []
        self._drifts: list[Tensor] = []
        self._radii: list[Tensor] = []

    def begin(self, updates: int) -> None:
        """Watch the forward passes of the next update until `end`, if that update is logged."""
        if self._space_of is None or (updates + 1) % self.every:
            return
        for part in (*self._model.encoder.last_parts(), *self._model.decoder.last_parts()):
            self._hooks.append(part.register_forward_hook(self._look))

    def end(self) -> None:
        """Log the measurements."""
        if not self._hooks:
            return
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()
        points = [p for p in self._model.parameters() if isinstance(p, geoopt.ManifoldParameter)]
        for table in points:
            self._measure(table, Space("lorentz", table.manifold.c))
        for name, seen in (("drift", self._drifts), ("radius", self._radii)):
            if seen:
                # a weight of 0 keeps the last value instead of a mean over the epoch
                metrics.log_scalar(name, _largest(seen), weight=0, priority=450)
                seen.clear()

    def _look(self, part: Any, _: Any, states: Tensor) -> None:
        self._measure(states, self._space_of(part))

    @torch.no_grad()
    def _measure(self, points: Tensor, space: Space) -> None:
        if space.kind == "lorentz":
            self._drifts.append(lorentz.violation(points, c=space.c).max())
        if space.kind != "euclidean":
            self._radii.append(vectors(points, space).norm(dim=-1).max())


def _largest(seen: Iterable[Tensor]) -> float:
    return float(torch.stack([value.float() for value in seen]).max())


@around(Trainer, "train_step")
def _watched(step: Function, trainer: Any, *args: Any, **kwargs: Any) -> Any:
    if not hasattr(trainer, "hyptrans_points"):
        every = trainer.cfg.common.log_interval
        trainer.hyptrans_points = PointStatistics(trainer.get_model(), every)
    trainer.hyptrans_points.begin(trainer.get_num_updates())
    logged = step(trainer, *args, **kwargs)
    trainer.hyptrans_points.end()
    return logged
