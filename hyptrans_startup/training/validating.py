"""Validation: what it will need is asked before the first update, and it never costs an epoch."""

import fcntl
import os
import time
from typing import Any

from hyptrans_startup.errors import UserError
from hyptrans_startup.wrapping import Call, before

CRITERIONS = {
    "cross_entropy": {"loss", "nll_loss", "ppl"},
    "label_smoothed_cross_entropy": {"loss", "nll_loss", "ppl", "accuracy"},
}
"""What fairseq's usual criterions measure; of others nothing is known before they are run."""
_TRIES = 20
_held: list[int] = []
"""Folders of this process's trainings; a lock ends with its process."""


@before
def metric_that_nothing_computes(cfg: Any, *_: Any, **__: Any) -> None:
    """``--best-checkpoint-metric bleu`` without ``--eval-bleu``: ``KeyError`` after an epoch."""
    metric = cfg.checkpoint.best_checkpoint_metric
    if metric == "bleu" and not getattr(cfg.task, "eval_bleu", True):
        raise UserError("--best-checkpoint-metric bleu needs --eval-bleu, which translates")
    name = getattr(cfg.criterion, "_name", None)
    known = CRITERIONS.get((name or "").removeprefix("tiled_"))
    if known is None or metric in {*known, "bleu"} or cfg.dataset.disable_validation:
        return
    raise UserError(
        f"--best-checkpoint-metric {metric} is nothing that --criterion {name} measures: "
        f"it has {', '.join(sorted(known))}, and bleu with --eval-bleu"
    )


def folder_of_another_training(main: Call, cfg: Any, *args: Any, **kwargs: Any) -> None:
    """Two trainings in one ``--save-dir`` take each other's checkpoints for their own.

    A folder that was made for a training which never began goes.
    """
    if cfg.checkpoint.no_save or cfg.distributed_training.distributed_rank:
        return main(cfg, *args, **kwargs)
    folder = cfg.checkpoint.save_dir
    made = not os.path.isdir(folder)
    os.makedirs(folder, exist_ok=True)
    _take(folder)
    try:
        return main(cfg, *args, **kwargs)
    finally:
        if made and not os.listdir(folder):
            os.rmdir(folder)


def _take(folder: str) -> None:
    """Lock a folder for this process.

    Raises:
        UserError: another training has it.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    _held.append(descriptor)
    for left in range(_TRIES, -1, -1):
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if not left:
                raise UserError(
                    f"another training writes to --save-dir {folder}: wait for it, or name another"
                ) from error
            # the workers of a training that was killed end a moment after it
            time.sleep(0.2)
        except OSError:
            return  # a file system without locks


def sentences_that_do_not_fit(call: Call, cfg: Any, trainer: Any, *args: Any, **kwargs: Any) -> Any:
    """A validation sentence that is too long for the model ends the training after its first epoch.

    So the batches of each validation set are made before the first update.
    """
    made = call(cfg, trainer, *args, **kwargs)
    whole = trainer.cfg
    if not whole.dataset.disable_validation:
        subsets = ["valid"] if whole.dataset.combine_valid_subsets else []
        for subset in subsets or whole.dataset.valid_subset.split(","):
            trainer.get_valid_iterator(subset)
    return made


def epoch_before_its_validation(
    validate: Call, cfg: Any, trainer: Any, task: Any, epoch_itr: Any, *args: Any
) -> Any:
    """Whatever fails in a validation, the weights that it was to measure are kept."""
    try:
        return validate(cfg, trainer, task, epoch_itr, *args)
    except Exception:
        from fairseq import checkpoint_utils

        checkpoint_utils.save_checkpoint(cfg.checkpoint, trainer, epoch_itr, None)
        raise


def patience_over_a_resume(save: Call, trainer: Any, filename: str, extra_state: Any) -> Any:
    """``--patience`` starts anew where a training goes on: its count goes into the checkpoint."""
    from fairseq_cli.train import should_stop_early

    if hasattr(should_stop_early, "best"):
        count = {"best": float(should_stop_early.best), "num_runs": should_stop_early.num_runs}
        extra_state["patience"] = count
    return save(trainer, filename, extra_state)


def patience_goes_on(load: Call, trainer: Any, *args: Any, **kwargs: Any) -> Any:
    """The count that `patience_over_a_resume` stored; it has two numbers, or none at all."""
    from fairseq_cli.train import should_stop_early

    extra_state = load(trainer, *args, **kwargs)
    count = (extra_state or {}).pop("patience", None)
    if isinstance(count, dict) and not trainer.cfg.checkpoint.reset_meters:
        best, runs = count.get("best"), count.get("num_runs")
        if isinstance(best, float) and isinstance(runs, int):
            vars(should_stop_early).update(best=best, num_runs=runs)
    return extra_state
