"""Whether a stored value fits the annotation of its option."""

import inspect
import types
import typing
from argparse import Namespace
from enum import Enum
from typing import Any

from hyptrans_startup.checkpoints.literals import literal
from hyptrans_startup.errors import UserError

_MISSING = "???"
"""OmegaConf's word for an option that has no value yet."""


def fits(value: Any, kind: Any) -> bool:
    """Return whether a value that fairseq stored fits the type of its option.

    As in fairseq, every option may be None, numbers stand for each other where nothing is lost, and
    what is no string may be stored as the text that the command line had.
    """
    if value is None or value == _MISSING or kind is Any:
        return True
    if isinstance(value, str) and kind is not str and not is_enum(kind) and not has_str(kind):
        return fits_text(value, kind)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, each) for each in arguments)
    if origin in (list, tuple):
        each = arguments[0] if arguments else Any
        return isinstance(value, list | tuple) and all(fits(part, each) for part in value)
    if origin is dict or kind is dict:
        return isinstance(value, dict)
    if is_enum(kind):
        # a choice may be a truth value in older files, and its list of choices grows
        return isinstance(value, str | bool)
    if hasattr(kind, "__dataclass_fields__"):
        return isinstance(value, dict | Namespace)
    return fits_plain(value, kind)


def fits_plain(value: Any, kind: Any) -> bool:
    """Return whether a value fits one of the types that a command line has."""
    if kind is bool:
        return isinstance(value, bool) or value in (0, 1)
    if kind is int:
        return isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    if kind is float:
        return isinstance(value, int | float)
    if kind is str:
        # lists of paths and numbers as names were taken by older releases
        return isinstance(value, str | int | float | list)
    return True


def fits_text(text: str, kind: Any) -> bool:
    """Return whether text fits a type that is no string: its literal does."""
    if text == "":
        return True
    try:
        value = literal(text)
    except UserError:
        return False
    if isinstance(value, str):
        return False
    listed = isinstance(value, list | tuple)
    return fits(value, kind) or (not listed and fits([value], kind))


def has_str(kind: Any) -> bool:
    """Return whether a string, or a choice, is among the types of a union."""
    arguments = typing.get_args(kind)
    union = typing.get_origin(kind) in (typing.Union, types.UnionType)
    return union and any(each is str or each is Any or is_enum(each) for each in arguments)


def is_enum(kind: Any) -> bool:
    """Return whether a type is a list of choices."""
    return inspect.isclass(kind) and issubclass(kind, Enum)
