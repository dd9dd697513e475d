"""Import modules of the package's optional extras, or say how to install them."""

import importlib
import re
from importlib import metadata
from types import ModuleType

from hyptrans.support.errors import UserError

_OF_EXTRA = re.compile(r"([\w.-]+).*\bextra == ['\"]([\w.-]+)['\"]")
_FAIRSEQ = "pip install --no-deps fairseq==0.12.2"
_OURS = ("dev", "test")
"""Extras for developers of this package; no command needs their modules."""


class MissingExtra(UserError, ModuleNotFoundError):
    """A module of an extra is not installed; the message gives the command that installs it."""


def require(module: str, extra: str) -> ModuleType:
    """Import a module, such as ``scipy.stats``, that an optional extra of this package installs.

    Raises:
        MissingExtra: the module is not installed.
        ModuleNotFoundError: the module is installed, but a module that it imports is not.
    """
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        message = f"{package} is missing: {_install(extra)}"
        raise MissingExtra(message, name=package) from None


def how_to_install(module: str | None) -> str | None:
    """Return the command that installs a missing module, None if no extra has it."""
    wanted = (module or "").partition(".")[0]
    if wanted == "fairseq":
        return _install("fairseq")
    try:
        requirements = metadata.requires("hyptrans") or []
    except metadata.PackageNotFoundError:
        # the package runs from a checkout without installation
        return None
    for found in filter(None, map(_OF_EXTRA.match, requirements)):
        if found[1].lower().replace("-", "_") == wanted and found[2] not in _OURS:
            return _install(found[2])
    return None


def _install(extra: str) -> str:
    command = f"pip install 'hyptrans[{extra}]'"
    # fairseq cannot be in an extra, as it requires libraries of 2020
    return f"{command} && {_FAIRSEQ}" if extra == "fairseq" else command
