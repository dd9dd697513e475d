"""Options as dataclass fields, and the command-line flags made of them."""

import argparse
import dataclasses
import typing
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from hyptrans.support.flags import positive

T = TypeVar("T")


def option(
    default: Any,
    about: str,
    *,
    in_formula: bool = False,
    of_size: bool = False,
    choices: Sequence[str] = (),
) -> Any:
    """Return a field of an architecture's configuration, with its help and default.

    ``in_formula``: another value changes the meaning of parameters without changing their shapes,
    so that a training refuses to resume from a checkpoint with another value. ``of_size``:
    architectures have values of their own. ``choices``: the allowed texts.
    """
    # a switch needs no default in its help; other texts state one that follows something else
    if not isinstance(default, bool) and default is not None and "default" not in about:
        about += f" (default: {'as --arch has it' if of_size else default})"
    metadata = {"help": about, "in_formula": in_formula, "choices": tuple(choices)}
    return dataclasses.field(default=default, metadata=metadata)


def add_option(
    parser: argparse._ActionsContainer,
    one: dataclasses.Field[Any],
    *,
    default: Any = None,
    shown: Any = None,
) -> None:
    """Add the flag of an :func:`option`, as ``fairseq-train`` names it.

    Its default is ``default``; help says ``shown``, if given, in place of the architecture's.
    """
    # of Optional[float], float
    kind = (typing.get_args(one.type) or (one.type,))[0]
    kind = positive if kind is int else kind
    how: dict[str, Any] = {"type": kind, "choices": one.metadata.get("choices") or None}
    if kind is bool:
        how = {"action": argparse.BooleanOptionalAction}
        if one.name.startswith("no_"):  # that action takes every --no-… for a false
            how = {"action": "store_const", "const": True}
    about = str(one.metadata.get("help", "")).replace("%", "%%")
    if shown is not None:
        about = about.replace("as --arch has it", str(shown))
    parser.add_argument(flag(one.name), default=default, help=about, **how)


def flag(name: str) -> str:
    """Return the flag of an option's name."""
    return "--" + name.replace("_", "-")


def setting(default: Any, about: str, parse: Callable[[str], Any] = positive, **more: Any) -> Any:
    """Return a field of a training's settings: its flag's help and other arguments of argparse.

    Help names the default, in place of ``DEFAULT`` or at its end.
    """
    about = about.replace("DEFAULT", f"default: {default}")
    if default not in (None, "") and "default: " not in about:
        about += f" (default: {default})"
    how = {} if "choices" in more else {"type": parse, "metavar": "N"}
    return dataclasses.field(default=default, metadata={"help": about, **how, **more})


def add_settings(parser: argparse._ActionsContainer, settings: type) -> None:
    """Add a flag for every :func:`setting`; one that is not given is None."""
    for one in dataclasses.fields(settings):
        parser.add_argument(flag(one.name), **one.metadata)


def given_settings(args: argparse.Namespace, settings: type[T]) -> T:
    """Return the settings that the flags give, and the defaults of all others."""
    found = {name: getattr(args, name) for name in settings.__annotations__}
    return settings(**{name: value for name, value in found.items() if value is not None})
