"""A checkpoint is looked at before it is loaded, checked, and built within what it holds."""

import os
import re
from collections.abc import Mapping
from pickle import UnpicklingError
from typing import Any

from hyptrans_startup.checkpoints.building import within
from hyptrans_startup.checkpoints.configurations import check_checkpoint, forget_files
from hyptrans_startup.checkpoints.reader import read
from hyptrans_startup.checkpoints.sentences import misfit, reason_of, unreadable
from hyptrans_startup.errors import UserError
from hyptrans_startup.wrapping import Call, before, told

CRITERIONS = ("cross_entropy", "label_smoothed_cross_entropy")
"""Of fairseq's criterions, those that a file may choose: others open files by their options."""
ALLOW = "HYPTRANS_ALLOW"
"""Variable with further names, separated by commas."""


@told(RuntimeError, EOFError, LookupError, ValueError, TypeError)
def bad_checkpoint(error: Exception, path: str, *_: Any, **__: Any) -> str:
    """Tracebacks for a checkpoint whose parts are not those that fairseq stores."""
    return unreadable(path, f"{type(error).__name__}: {error}")


@before
def no_regular_file(path: str, *_: Any, **__: Any) -> None:
    """Waiting without end for a pipe, or reading a device without end."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise UserError(f"checkpoint {path} is no regular file: name one that fairseq-train wrote")


def stored_by_a_stranger(load: Call, file: Any, *args: Any, **options: Any) -> Any:
    """A checkpoint that fairseq believes as it is; read here, and not by torch."""
    # fairseq opens the file; a checkpoint in shards comes as a name
    path = getattr(file, "name", file)
    if path is file:
        with open(path, "rb") as opened:
            return stored_by_a_stranger(load, opened, *args, **options)
    try:
        state = read(file)
    except UnpicklingError as error:
        raise UserError(refused(path, str(error))) from error
    try:
        check_checkpoint(state)
    except UserError as error:
        raise UserError(f"checkpoint {path} is refused: {error}; use one you can trust") from error
    forget_files(state)
    return state


def refused(path: str, reason: str) -> str:
    """Return the sentence for a file that the reader does not take."""
    asked = re.search(r"GLOBAL (\S+)", reason)
    if asked is None:
        return unreadable(path, reason)
    return (
        f"checkpoint {path} is refused: loading it would call {asked[1]}, and a checkpoint "
        "of fairseq holds only tensors, numbers and options; use one you can trust"
    )


def bad_model(load: Call, filenames: Any, *args: Any, **kwargs: Any) -> Any:
    """A model larger than its file, and tracebacks for one that cannot be built or filled."""
    from torch.cuda import OutOfMemoryError

    try:
        with within(*filenames):
            return load(filenames, *args, **kwargs)
    except (OSError, MemoryError, OutOfMemoryError):
        raise
    except Exception as error:
        told: Exception = error
        unfilled = str(error).startswith("Error(s) in loading state_dict")
        if not (unfilled or isinstance(error, UserError)):
            told = UserError(f"no model can be built of its options ({reason_of(error)})")
        raise UserError(misfit(", ".join(map(str, filenames)), told)) from error


def stored_criterion(
    load: Call, filenames: Any, arg_overrides: Any = None, *args: Any, **kwargs: Any
) -> Any:
    """A criterion that is built of what a stranger stored, in ``fairseq-validate``."""
    models, saved, task = load(filenames, arg_overrides, *args, **kwargs)
    check_criterion(saved.criterion, str(filenames[0]), arg_overrides or {})
    return models, saved, task


@told(LookupError, TypeError, AttributeError)
def stored_validation(error: Exception, cfg: Any, *_: Any, **__: Any) -> str:
    """Tracebacks of many kinds of a criterion and of the options of a task."""
    return (
        f"checkpoint {cfg.common_eval.path} cannot be validated with the criterion and the "
        f"options of its task ({reason_of(error)}); name others, as with --criterion"
    )


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
