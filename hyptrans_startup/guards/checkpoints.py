"""A checkpoint from a stranger: looked at before it is loaded, checked before it is built."""

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pickle import UnpicklingError
from types import ModuleType
from typing import Any

from hyptrans_startup.errors import UserError
from hyptrans_startup.guards.building import within
from hyptrans_startup.guards.configurations import check_checkpoint, forget_files
from hyptrans_startup.guards.containers import check_container
from hyptrans_startup.inputs import misfit, unreadable
from hyptrans_startup.wrapping import Overlay


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

    vars(module)["load_model_ensemble_and_task"] = load_model_ensemble_and_task


@contextmanager
def stored_training(module: ModuleType) -> Iterator[None]:
    """Tracebacks of many kinds for a state of the training that does not go together."""
    yield
    stock = module.Trainer.load_checkpoint

    def load_checkpoint(self: Any, filename: str, *args: Any, **kwargs: Any) -> Any:
        try:
            return stock(self, filename, *args, **kwargs)
        except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
            raise UserError(
                f"checkpoint {filename} does not hold the state of a training that fits this one "
                f"({reason_of(error)}); --reset-optimizer, --reset-meters and --reset-dataloader "
                "leave it out"
            ) from error

    module.Trainer.load_checkpoint = load_checkpoint


def reason_of(error: BaseException) -> str:
    """Return the kind of an error and its words, cut to a part of a sentence."""
    return textwrap.shorten(f"{type(error).__name__}: {error}", 160)
