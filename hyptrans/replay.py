"""Run the batch again at which a training's gradients were no longer finite.

``python -m hyptrans.replay checkpoints/crash.pt`` builds the model, the loss and the precision of
the training from the file, takes its weights, its batch and the random numbers of that update, and
says what is not finite first. ``HYPTRANS_KERNELS=eager`` before it takes the plain formulas.
"""

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hyptrans.support.errors import UserError, run_command
from hyptrans_startup.divergence import SAMPLES


def main(argv: Sequence[str] | None = None) -> None:
    """Run one update, without taking it."""
    parser = argparse.ArgumentParser(
        prog="python -m hyptrans.replay", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("file", type=Path, help="crash.pt of a training's --save-dir")
    parser.add_argument("--cpu", action="store_true", help="keep off the GPU")
    args = parser.parse_args(argv)
    if not args.file.is_file():
        raise UserError(f"{args.file} does not exist; fairseq-train writes it at a NaN")
    print(replay(args.file, cpu=args.cpu))  # noqa: T201


def replay(file: Path, *, cpu: bool = False) -> str:
    """Run the batch of a file again.

    Returns:
        What to say where the gradients are finite after all.

    Raises:
        UserError: they are not, and the message says what comes first; or the file has no batch.
    """
    from fairseq import checkpoint_utils, utils
    from fairseq.trainer import Trainer

    import hyptrans.models  # noqa: F401 - registers what the file names

    logging.getLogger("fairseq").setLevel(logging.WARNING)
    state = checkpoint_utils.load_checkpoint_to_cpu(str(file))
    samples = state["extra_state"].get(SAMPLES)
    if not samples:
        raise UserError(f"{file} holds no batch: it is no crash.pt of a training that met NaN")
    cfg = state["cfg"]
    cfg.common.cpu = cfg.common.cpu or cpu
    cfg.checkpoint.save_dir = str(file.parent)
    utils.import_user_module(cfg.common)
    (model,), _, task = checkpoint_utils.load_model_ensemble_and_task([str(file)])
    trainer: Any = Trainer(cfg, task, model, task.build_criterion(cfg.criterion))
    updates = state["optimizer_history"][-1]["num_updates"]
    trainer.set_num_updates(updates)
    # the file is there already
    trainer.save_checkpoint = lambda *_: None
    trainer.optimizer.step = lambda *_, **__: None
    trainer.train_step(samples)
    return f"update {updates + 1} of {file}: gradients are finite here"


if __name__ == "__main__":
    sys.exit(run_command(main, stopped=""))
