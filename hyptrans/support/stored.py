"""Dataclasses out of JSON that somebody else may have written: only what the fields allow."""

import dataclasses
import functools
import json
import typing
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


def read_json(text: str, *, unique: bool = False) -> dict[str, Any]:
    """Return the object that a text holds.

    Args:
        text: JSON.
        unique: refuse two fields of one name, of which other readers may take the other.

    Raises:
        ValueError: no JSON, no object, brackets in brackets without end, or fields of one name.
    """
    try:
        found = json.loads(text, object_pairs_hook=_unique if unique else None)
    except RecursionError as error:
        raise ValueError("its JSON has brackets in brackets without end") from error
    if not isinstance(found, dict):
        raise ValueError(f"its JSON is a {type(found).__name__}, not an object")
    return found


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("its JSON has two fields of one name")
    return found


def build(kind: type[T], found: Any) -> T:
    """Return a dataclass with the fields that an object of JSON names.

    Raises:
        ValueError: a field is unknown, missing, or of another type than it is declared.
    """
    if not isinstance(found, Mapping):
        raise ValueError(f"{kind.__name__} is a {type(found).__name__}, not an object")
    hints, needed = _declared(kind)  # type: ignore[arg-type]
    if unknown := sorted(found.keys() - hints.keys()):
        raise ValueError(f"{kind.__name__} has no {unknown[0]!r}")
    if missing := sorted(needed - found.keys()):
        raise ValueError(f"{kind.__name__} lacks {missing[0]!r}")
    return kind(**{name: as_declared(name, value, hints[name]) for name, value in found.items()})


@functools.cache
def _declared(kind: type) -> tuple[dict[str, Any], frozenset[str]]:
    """The fields of a dataclass: types by name, and those without a default."""
    fields, none = dataclasses.fields(kind), dataclasses.MISSING
    every = typing.get_type_hints(kind)
    return (
        {field.name: every[field.name] for field in fields},
        frozenset(f.name for f in fields if f.default is none and f.default_factory is none),
    )


def as_declared(name: str, value: Any, declared: Any) -> Any:
    """Return a value of JSON as its declared type, which must be one that JSON can hold.

    Raises:
        ValueError: it is of another type, or an integer too large for the float that it stands for.
    """
    if declared is float and type(value) is int:
        value = _float(name, value)
    origin, arguments = typing.get_origin(declared), typing.get_args(declared)
    if dataclasses.is_dataclass(declared) and isinstance(declared, type):
        return build(declared, value)
    if origin is list and isinstance(value, list):
        return [as_declared(name, part, arguments[0]) for part in value]
    fits = {
        # a bool is an int to Python
        bool: isinstance(value, bool),
        int: isinstance(value, int) and not isinstance(value, bool),
        float: isinstance(value, float),
        str: isinstance(value, str),
    }
    if (origin is typing.Literal and value in arguments) or fits.get(declared, False):
        return value
    raise ValueError(f"{name} is a {type(value).__name__} where it cannot be one")


def _float(name: str, value: int) -> float:
    try:
        return float(value)
    except OverflowError as error:
        raise ValueError(f"{name} is an integer too large for a float") from error
