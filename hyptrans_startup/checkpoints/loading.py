"""A checkpoint is looked at before it is loaded, checked, and built within what it holds."""

import os
import re
import types
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pickle import UnpicklingError
from typing import Any

from hyptrans_startup.checkpoints import schema
from hyptrans_startup.checkpoints.building import (
    check_repeated,
    read_too,
    stored_bytes,
    within_bytes,
)
from hyptrans_startup.checkpoints.reader import read
from hyptrans_startup.checkpoints.sentences import misfit, reason_of, unreadable
from hyptrans_startup.errors import UserError
from hyptrans_startup.wrapping import Call, after, before, told

PARTS = {
    "args": (Namespace, "options"),
    "cfg": (dict, "options"),
    "model": (dict, "parameters by name"),
    "extra_state": (dict, "the state of the training"),
    "optimizer_history": (list, "a list"),
    "task_state": (dict, "the state of the task"),
}
"""Of a checkpoint, and what they are."""
_typed: ContextVar[Mapping[str, Any]] = ContextVar("typed", default=types.MappingProxyType({}))
"""Options of the command line that go before those of the checkpoint that is read."""
_built: ContextVar[tuple[str, ...]] = ContextVar("built", default=())
"""Groups of its configuration of which something is built."""


@contextmanager
def building(*groups: str) -> Iterator[None]:
    """Read checkpoints of which something is built: their model, task or criterion.

    Raises:
        UserError: a file names what no file may choose.
    """
    token = _built.set((*_built.get(), *groups))
    try:
        yield
    finally:
        _built.reset(token)


@told(RuntimeError, EOFError, LookupError, ValueError, TypeError)
def bad_checkpoint(error: Exception, path: str, *_: Any, **__: Any) -> str:
    """Tracebacks for a checkpoint whose parts are not those that fairseq stores."""
    return unreadable(path, f"{type(error).__name__}: {error}")


def typed_options(load: Call, path: str, arg_overrides: Any = None, *args: Any, **kw: Any) -> Any:
    """A stored criterion that is taken, although another one is typed."""
    token = _typed.set(arg_overrides or {})
    try:
        return load(path, arg_overrides, *args, **kw)
    finally:
        _typed.reset(token)


@after
def options_converted_twice(state: dict[str, Any], *_: Any, **__: Any) -> None:
    """Half a second: fairseq converts the options of an old file, and again to build its model."""
    if "model" in _built.get() and state.get("cfg") is not None:
        state["args"] = None


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
        found = taken(state)
        read_too(stored_bytes(_tensors(found.get("model"))))
        return found
    except UserError as error:
        raise UserError(f"checkpoint {path} is refused: {error}; use one you can trust") from error


def taken(state: Any) -> dict[str, Any]:
    """Return a checkpoint, as the reader returns it, with what is taken of its configuration.

    Raises:
        UserError: with what is wrong, without the name of the file.
    """
    if not isinstance(state, dict):
        raise UserError(f"it is a {type(state).__name__}, not the parts of a checkpoint by name")
    check_repeated(_tensors(state))
    for name, (kind, words) in PARTS.items():
        if state.get(name) is not None and not isinstance(state[name], kind):
            raise UserError(f"its {name} is a {type(state[name]).__name__}, not {words}")
    # one that is not contiguous may repeat few numbers
    tables = (part for part in _tensors(state.get("model")) if part.is_contiguous())
    largest = max((table.numel() for table in tables), default=0)
    options = {name: state[name] for name in ("args", "cfg") if state.get(name) is not None}
    given = _typed.get(), _built.get(), largest
    return state | {name: schema.taken(each, *given) for name, each in options.items()}


def _tensors(value: Any) -> Iterator[Any]:
    """The tensors in a part of a checkpoint."""
    if isinstance(value, dict | list | tuple):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _tensors(part)
    elif hasattr(value, "element_size"):
        yield value


def refused(path: str, reason: str) -> str:
    """Return the sentence for a file that the reader does not take."""
    asked = re.search(r"GLOBAL (\S+)", reason)
    if asked is None:
        return unreadable(path, reason)
    return (
        f"checkpoint {path} is refused: loading it would call {asked[1]}, and a checkpoint "
        "of fairseq holds only tensors, numbers and options; use one you can trust"
    )


def bad_model(
    load: Call, filenames: Any, arg_overrides: Any = None, task: Any = None, *args: Any, **kw: Any
) -> Any:
    """A model larger than its file, and tracebacks for one that cannot be built or filled."""
    from torch.cuda import OutOfMemoryError

    try:
        with within_bytes(0), building("model", *(["task"] if task is None else [])):
            read_too(stored_bytes(_tensors((kw.get("state") or {}).get("model"))))
            return load(filenames, arg_overrides, task, *args, **kw)
    except (OSError, MemoryError, OutOfMemoryError):
        raise
    except Exception as error:
        told: Exception = error
        unfilled = str(error).startswith("Error(s) in loading state_dict")
        if not (unfilled or isinstance(error, UserError)):
            told = UserError(f"no model can be built of its options ({reason_of(error)})")
        raise UserError(misfit(", ".join(map(str, filenames)), told)) from error


def stored_validation(main: Call, cfg: Any, *args: Any, **kwargs: Any) -> Any:
    """Tracebacks of many kinds of a criterion and of the options of a task."""
    try:
        with building("criterion"):
            return main(cfg, *args, **kwargs)
    except (LookupError, TypeError, AttributeError, NotImplementedError) as error:
        raise UserError(
            f"checkpoint {cfg.common_eval.path} cannot be validated with the criterion and the "
            f"options of its task ({reason_of(error)}); name others, as with --criterion"
        ) from error
