"""Whether a stored value fits the annotation of its option."""

import inspect
import types
import typing
from argparse import Namespace
from enum import Enum
from typing import Any

from hyptrans_startup.checkpoints.literals import literal
from hyptrans_startup.errors import UserError

UNSET = "???"
"""OmegaConf's word for an option that has no value yet."""


def fits(value: Any, kind: Any) -> bool:
    """Return whether a value that fairseq stored fits the type of its option.

    As in fairseq, every option may be None, numbers stand for each other where nothing is lost, and
    what is no string may be stored as the text that the command line had.
    """
    if value is None or kind is Any or (isinstance(value, str) and value in ("", UNSET)):
        return True
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, each) for each in arguments if each is not types.NoneType)
    if inspect.isclass(kind) and issubclass(kind, Enum):
        # a choice may be a truth value in older files, and its list of choices grows
        return isinstance(value, str | bool)
    if isinstance(value, str) and kind is not str:
        return _fits_text(value, kind)
    if origin in (list, tuple):
        each = arguments[0] if arguments else Any
        return isinstance(value, list | tuple) and all(fits(part, each) for part in value)
    if origin is dict or kind is dict or hasattr(kind, "__dataclass_fields__"):
        return isinstance(value, dict | Namespace)
    if kind is bool:
        return isinstance(value, bool) or value in (0, 1)
    if kind is int:
        return isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    # lists of paths and numbers as names were taken by older releases
    plain = {float: int | float, str: str | int | float | list}
    return isinstance(value, plain.get(kind, object))


def _fits_text(text: str, kind: Any) -> bool:
    """Return whether text fits a type that is no string: its literal does."""
    try:
        value = literal(text)
    except UserError:
        return False
    listed = isinstance(value, list | tuple)
    return not isinstance(value, str) and (
        fits(value, kind) or (not listed and fits([value], kind))
    )
