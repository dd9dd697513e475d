"""``hyptrans replay``: the update again at which a training's gradients were no longer finite."""

import argparse
import math
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hyptrans.support.errors import UserError, out_of_memory
from hyptrans.support.flags import add_alias, add_device
from hyptrans.support.logs import quiet
from hyptrans_startup.checkpoints.loading import building
from hyptrans_startup.checkpoints.sentences import reason_of
from hyptrans_startup.plugin import PACKAGE
from hyptrans_startup.training.divergence import SAMPLES, NotFiniteError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("file", type=Path, metavar="FILE", help="crash.pt of a --save-dir")
    add_device(parser, None, "that of the training")
    add_alias(parser, "--cpu", "device", "cpu")
    parser.add_argument(
        "--user-dir",
        metavar="DIR",
        help="plug-in of the training besides hyptrans, which is imported: code that runs",
    )


def main(args: argparse.Namespace) -> None:
    """Run the update, without taking it, and say what comes of it.

    Raises:
        UserError: there is no such file, or what :func:`replay` raises.
    """
    if not args.file.is_file():
        raise UserError(
            f"{args.file} is not a file: name crash.pt, which fairseq-train writes to --save-dir "
            "where it meets NaN"
        )
    with quiet():
        said = replay(args.file, cpu=args.device == "cpu", user_dir=args.user_dir)
    sys.stdout.write(said + "\n")


def replay(file: Path, *, cpu: bool = False, user_dir: str | None = None) -> str:
    """Run an update with the weights, the batches and the random numbers of a file.

    Model, loss and precision are those of the training. ``HYPTRANS_KERNELS=eager`` takes the plain
    formulas instead of the kernels.

    Returns:
        What to say where the gradients are finite after all.

    Raises:
        UserError: they are not, and the message says what comes first; or the file has no batch
            or no training that can be run, or is of a plug-in that is not named.
    """
    from fairseq import checkpoint_utils, utils

    import hyptrans.fairseq  # noqa: F401 - registers what the file names

    if user_dir is not None:
        utils.import_user_module(argparse.Namespace(user_dir=user_dir))
    with building("task", "criterion"):
        state = checkpoint_utils.load_checkpoint_to_cpu(str(file))
    samples = state["extra_state"].get(SAMPLES)
    if not isinstance(samples, list) or not samples:
        raise UserError(f"{file} holds no batch: it is no crash.pt of a training that met NaN")
    with _told(file, "training"):
        _prepare(state["cfg"], file, cpu=cpu, user_dir=user_dir)
        trainer, updates = _trainer(file, state)
    try:
        with _told(file, "batches"):
            # else fairseq goes over a batch that does not fit
            trainer.train_step(samples, raise_oom=True)
    except UserError as error:
        if not isinstance(error.__cause__, NotFiniteError):
            raise
        # its own words advise to do what was done just now
        raise UserError(
            f"update {updates + 1} of {file}: gradients are NaN here too (first not finite: "
            f"{error.__cause__.first}); go on from an earlier checkpoint with a lower --lr or "
            "--clip-norm"
        ) from error
    return f"update {updates + 1} of {file}: gradients are finite here"


@contextmanager
def _told(file: Path, what: str) -> Iterator[None]:
    """Whatever fairseq says of a file that anybody may have written, in one sentence.

    Raises:
        UserError: it cannot be run.
    """
    try:
        yield
    except (
        *(LookupError, TypeError, AttributeError, ValueError, RuntimeError),
        *(AssertionError, ImportError),
    ) as error:
        if out_of_memory(error):
            raise
        raise UserError(
            f"{file} holds no {what} that can be run ({reason_of(error)}): name a file that "
            "fairseq-train wrote where it met NaN"
        ) from error


def _prepare(cfg: Any, file: Path, *, cpu: bool, user_dir: str | None) -> None:
    """Set in a stored configuration what is another's here.

    Raises:
        UserError: the training needs a GPU, or a plug-in that is not named.
    """
    import torch

    # it has no effect without a GPU
    cfg.common.amp = cfg.common.amp and not cfg.common.cpu
    cfg.common.cpu = cfg.common.cpu or cpu
    half = "--fp16" if cfg.common.fp16 else "--amp" if cfg.common.amp else None
    if half and (cfg.common.cpu or not torch.cuda.is_available()):
        raise UserError(f"{file} is of a training with {half}, which a GPU alone can run again")
    cfg.checkpoint.save_dir = str(file.parent)
    named = Path(cfg.common.user_dir or PACKAGE).name
    if named != PACKAGE and user_dir is None:
        raise UserError(
            f"{file} is of a training with --user-dir {cfg.common.user_dir}: name it here too, if "
            "you trust its code"
        )
    # never what the file names: it may be a stranger's
    cfg.common.user_dir = user_dir


def _trainer(file: Path, state: Mapping[str, Any]) -> tuple[Any, int]:
    """The training as it was when the file was written, and after how many updates.

    Raises:
        ValueError: the file does not say after how many; fairseq raises more.
    """
    from fairseq import checkpoint_utils
    from fairseq.trainer import Trainer

    from hyptrans.fairseq.checkpoint import updates_of

    cfg = state["cfg"]
    (model,), _, task = checkpoint_utils.load_model_ensemble_and_task([str(file)])
    trainer: Any = Trainer(cfg, task, model, task.build_criterion(cfg.criterion))
    updates = updates_of(state)
    if updates is None:
        raise ValueError("no number of updates")
    trainer.set_num_updates(updates)
    # the file is there already, and stays as it is
    trainer.save_checkpoint = lambda *_: None
    trainer.optimizer.step = lambda *_, **__: None
    _take_no_overflow(trainer.optimizer, state)
    return trainer, updates


def _take_no_overflow(optimizer: Any, state: Mapping[str, Any]) -> None:
    """Let half precision scale the loss as it did, and fail where it would try a smaller scale.

    The scale of --amp is not stored. There it is 1, which loses small gradients and no large one.
    """
    import torch

    scaler = getattr(optimizer, "scaler", None)
    if scaler is None:
        return
    if isinstance(scaler, torch.amp.GradScaler):
        optimizer.min_loss_scale = math.inf
        optimizer._grad_scaler = torch.amp.GradScaler("cuda", init_scale=1.0)
        return
    scale = (state.get("last_optimizer_state") or {}).get("loss_scale")
    if isinstance(scale, int | float) and 0 < scale < math.inf:
        scaler.loss_scale = scale
    scaler.min_loss_scale = math.inf
