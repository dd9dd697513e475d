"""Statistics of every training in fairseq's log: drift and radius of points, and no progress."""

import functools
import logging
from typing import Any

from fairseq.trainer import Trainer

from hyptrans.fairseq.training.points import PointStatistics
from hyptrans.fairseq.training.progress import Progress, of_trainer

logger = logging.getLogger(__name__)


class Statistics:
    """What is watched in one training."""

    def __init__(self, trainer: Trainer) -> None:
        self.points = PointStatistics(trainer.get_model(), trainer.cfg.common.log_interval)
        self.progress: Progress | None = of_trainer(trainer)

    def look(self, trainer: Trainer, logged: dict[str, Any] | None) -> None:
        """Take what an update logged."""
        self.points.end()
        # other criterions' losses are not those of words
        if self.progress is not None and logged and "nll_loss" in logged:
            said = self.progress.update(
                trainer.get_num_updates(), trainer.get_lr(), float(logged["nll_loss"])
            )
            if said:
                logger.warning(said)


def install() -> None:
    """Watch every trainer: fairseq has no place where plug-ins see an update's statistics."""
    step = Trainer.train_step
    if hasattr(step, "of_hyptrans"):
        return

    @functools.wraps(step)
    def watched(self: Trainer, *args: Any, **kwargs: Any) -> Any:
        if not hasattr(self, "hyptrans_statistics"):
            self.hyptrans_statistics = Statistics(self)
        self.hyptrans_statistics.points.begin(self.get_num_updates())
        logged = step(self, *args, **kwargs)
        self.hyptrans_statistics.look(self, logged)
        return logged

    watched.of_hyptrans = True  # type: ignore[attr-defined]
    Trainer.train_step = watched
