"""A checkpoint from a stranger: looked at before it is loaded, checked before it is built."""

import math
import os
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pickle import UnpicklingError
from types import ModuleType
from typing import Any

from hyptrans_startup.errors import UserError
from hyptrans_startup.guards.building import within
from hyptrans_startup.guards.configurations import check_checkpoint, forget_files, shown
from hyptrans_startup.guards.containers import check_container
from hyptrans_startup.inputs import misfit, unreadable
from hyptrans_startup.wrapping import Overlay

CRITERIONS = ("cross_entropy", "label_smoothed_cross_entropy")
"""Of fairseq's criterions, those that a file may choose: others open files by their options."""
ALLOW = "HYPTRANS_ALLOW"
"""Variable with further names, separated by commas."""
MOST_COUNTED = 1 << 31
"""Updates, epochs and batches of one, far beyond any training; seeds are made of them."""


@contextmanager
def stored_by_a_stranger(module: ModuleType) -> Iterator[None]:
    """Sizes, options and interpolations of a checkpoint that fairseq believes as they are."""
    yield
    import torch

    def load(file: Any, *args: Any, **options: Any) -> Any:
        # fairseq hands over a file that it opened; what it keeps in shards, by the name
        path = getattr(file, "name", file)
        if path is file:
            with open(path, "rb") as opened:
                return load(opened, *args, **options)
        try:
            check_container(file)
        except UnpicklingError as error:
            if str(error).startswith("GLOBAL"):
                raise  # told by the name of what would be called
            raise unreadable(path, str(error)) from error
        state = torch.load(file, *args, **options)
        try:
            check_checkpoint(state)
        except UserError as error:
            raise UserError(
                f"checkpoint {path} is refused: {error}; use one you can trust"
            ) from error
        forget_files(state)
        return state

    vars(module)["torch"] = Overlay(torch, load=load)
    stock = module.load_model_ensemble_and_task

    def load_model_ensemble_and_task(filenames: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            with within(*filenames):
                return stock(filenames, *args, **kwargs)
        except (UserError, OSError, MemoryError, torch.cuda.OutOfMemoryError):
            raise
        except Exception as error:
            if str(error).startswith("Error(s) in loading state_dict"):
                raise
            told = UserError(f"no model can be built of its options ({reason_of(error)})")
            raise misfit(", ".join(map(str, filenames)), told) from error

    stock_training = module.load_checkpoint

    def load_checkpoint(*args: Any, **kwargs: Any) -> Any:
        try:
            return stock_training(*args, **kwargs)
        except RuntimeError as error:
            if not str(error).startswith("Cannot resume training due to dataloader mismatch"):
                raise
            raise UserError(
                "the checkpoint has seen more batches of its epoch than the data give: take the "
                "data and --max-tokens of its training, or begin the epoch anew by "
                "--reset-dataloader"
            ) from error

    vars(module).update(
        load_checkpoint=load_checkpoint,
        load_model_ensemble_and_task=load_model_ensemble_and_task,
    )


@contextmanager
def stored_training(module: ModuleType) -> Iterator[None]:
    """Tracebacks of many kinds for a state of the training that does not go together."""
    yield
    stock = module.Trainer.load_checkpoint

    def load_checkpoint(self: Any, filename: str, *args: Any, **kwargs: Any) -> Any:
        try:
            extra_state = stock(self, filename, *args, **kwargs)
            check_counts(self, extra_state)
            # built where its state was loaded
            if self._optimizer is not None:
                check_optimizer(self._optimizer.optimizer)
            return extra_state
        except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
            raise UserError(
                f"checkpoint {filename} does not hold the state of a training that fits this one "
                f"({reason_of(error)}); --reset-optimizer, --reset-meters and --reset-dataloader "
                "leave it out"
            ) from error

    module.Trainer.load_checkpoint = load_checkpoint


@contextmanager
def stored_validation(module: ModuleType) -> Iterator[None]:
    """A criterion that is built of what a stranger stored, and tracebacks of many kinds of it."""
    yield
    stock, utils = module.main, module.checkpoint_utils

    def main(cfg: Any, override_args: Any = None) -> Any:
        typed = {} if override_args is None else dict(vars(override_args))

        def load(filenames: Any, *args: Any, **kwargs: Any) -> Any:
            models, saved, task = utils.load_model_ensemble_and_task(filenames, *args, **kwargs)
            check_criterion(saved.criterion, str(filenames[0]), typed)
            return models, saved, task

        vars(module)["checkpoint_utils"] = Overlay(utils, load_model_ensemble_and_task=load)
        try:
            return stock(cfg, override_args)
        except (LookupError, TypeError, AttributeError) as error:
            raise UserError(
                f"checkpoint {cfg.common_eval.path} cannot be validated with the criterion and the "
                f"options of its task ({reason_of(error)}); name others, as with --criterion"
            ) from error

    vars(module)["main"] = main


def check_criterion(stored: Any, path: str, typed: Mapping[str, Any]) -> None:
    """Check a stored criterion before it is built; a plug-in's is code that the user named.

    Where the user typed the criterion, texts among its options that were not typed are forgotten:
    a criterion may take one for the name of a file to write.

    Args:
        stored: the options of the criterion.
        path: of the checkpoint.
        typed: options of the command line.

    Raises:
        UserError: the criterion is none that a file may name.
    """
    from fairseq.criterions import CRITERION_REGISTRY

    # as fairseq finds it, or another name would be built than was checked
    if isinstance(stored, str):
        name: Any = stored
    elif isinstance(stored, Mapping):
        name = stored.get("_name")
    else:
        name = getattr(stored, "criterion", None)
    known = CRITERION_REGISTRY.get(name) if isinstance(name, str) else None
    # what is not registered, is not built
    if known is None or name in CRITERIONS or not known.__module__.startswith("fairseq."):
        return
    if typed.get("criterion") != name and name not in os.environ.get(ALLOW, "").split(","):
        raise UserError(
            f"checkpoint {path} names the criterion {name}, which a file cannot choose: type one, "
            f"as in --criterion cross_entropy, or set {ALLOW}={name} if you trust the file"
        )
    kept = {*typed, "_name", "criterion"}
    if isinstance(stored, Mapping):
        texts = {option for option in stored if isinstance(stored[option], str)}
        for option in texts - kept:
            stored[option] = None  # type: ignore[index]
    elif not isinstance(stored, str):
        texts = {option for option, value in vars(stored).items() if isinstance(value, str)}
        vars(stored).update(dict.fromkeys(texts - kept))


def check_counts(trainer: Any, extra_state: Any) -> None:
    """Check what a training counts on from.

    Args:
        trainer: as fairseq has filled it.
        extra_state: what it did not take of the checkpoint, None where that was not asked for.

    Raises:
        ValueError: names the number that is none.
    """
    counts = {"num_updates": (trainer.get_num_updates(), 0)}
    iterator = (extra_state or {}).get("train_iterator") or {}
    for name, least in (("epoch", 1), ("iterations_in_epoch", 0)):
        if name in iterator:
            counts[name] = iterator[name], least
    for name, (value, least) in counts.items():
        if not (isinstance(value, int) and least <= value <= MOST_COUNTED):
            raise ValueError(f"{name} is {shown(value)}")
    seconds = trainer._previous_training_time
    if getattr(seconds, "shape", None) in ((), (1,)):
        # the mean over several processes
        seconds = seconds.item()
    if not (isinstance(seconds, int | float) and 0 <= seconds < math.inf):
        raise ValueError(f"previous_training_time is {shown(seconds)}")


def check_optimizer(optimizer: Any) -> None:
    """Check the state that an optimizer of torch's has loaded, which it looks at when it steps.

    Raises:
        ValueError: names what another optimizer has, or one of other parameters.
    """
    from torch import Tensor

    # one that is made of several has neither
    defaults, state = (getattr(optimizer, name, {}) for name in ("defaults", "state"))
    for group in optimizer.param_groups:
        for name, value in defaults.items():
            if not like(group.get(name, value), value):
                raise ValueError(f"its option {name} is {shown(group[name])}")
    for parameter, kept in state.items():
        for name, value in kept.items() if isinstance(parameter, Tensor) else ():
            if name.startswith("exp_avg") and isinstance(value, Tensor):
                # one number may be of a whole point
                pairs = zip(value.shape, parameter.shape, strict=False)
                if value.dim() != parameter.dim() or not all(a in (1, b) for a, b in pairs):
                    raise ValueError(f"{name} is of another shape than its parameter")
            elif not isinstance(value, Tensor | int | float | None):
                raise ValueError(f"{name} is {shown(value)}")


def like(value: Any, default: Any) -> bool:
    """Whether an option of an optimizer is of the kind of its default."""
    if isinstance(default, Sequence) and not isinstance(default, str):
        same = isinstance(value, list | tuple) and len(value) == len(default)
        return same and all(map(like, value, default))
    if isinstance(default, int | float):
        # a rate may be a tensor
        return isinstance(value, int | float) or hasattr(value, "element_size")
    return True


def reason_of(error: BaseException) -> str:
    """Return the kind of an error and its words, cut to a part of a sentence."""
    return textwrap.shorten(f"{type(error).__name__}: {error}", 160)
