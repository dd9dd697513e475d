"""Statistics of every training in fairseq's log: drift and radius of points, and no progress."""

import logging
from typing import Any

from fairseq.trainer import Trainer

from hyptrans.fairseq.around import Function, around
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


@around(Trainer, "train_step")
def _watched(step: Function, trainer: Any, *args: Any, **kwargs: Any) -> Any:
    if not hasattr(trainer, "hyptrans_statistics"):
        trainer.hyptrans_statistics = Statistics(trainer)
    trainer.hyptrans_statistics.points.begin(trainer.get_num_updates())
    logged = step(trainer, *args, **kwargs)
    trainer.hyptrans_statistics.look(trainer, logged)
    return logged
