"""Modules that come with an optional extra of the package: import them, or say how to get them."""

import importlib
import re
import sys
from importlib import metadata
from types import ModuleType

from hyptrans.support.errors import UserError

_OF_EXTRA = re.compile(r"([\w.-]+).*\bextra == ['\"]([\w.-]+)['\"]")
_FAIRSEQ = "pip install --no-deps fairseq==0.12.2"
_OURS = ("dev", "test")
"""Extras of those who work on this package: no command needs what they bring."""


class MissingExtra(UserError, ModuleNotFoundError):
    """A module of an extra is not installed; the message has the command that installs it."""


def require(module: str, extra: str) -> ModuleType:
    """Import a module of an optional extra.

    Args:
        module: its name, for example ``conllu`` or ``scipy.stats``.
        extra: the extra of this package that installs it.

    Raises:
        MissingExtra: it is not installed. A module that is there but misses one of its own is an
            error of its own.
    """
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        message = f"{package} is missing: {_install(extra)}"
        raise MissingExtra(message, name=package) from None


def transformers() -> ModuleType:
    """Import Hugging Face's library, beside a torchaudio that cannot be imported, too.

    Raises:
        MissingExtra: it is not installed.
    """
    try:
        importlib.import_module("torchaudio")
    except (ImportError, OSError):
        # fairseq brings it in a build that may not fit torch's, and the library, which would import
        # it for models of speech, takes one that is None for one that is not installed
        sys.modules["torchaudio"] = None  # type: ignore[assignment]
    library = require("transformers", "transformers")
    # what it found, where it was imported before; some releases look once and for all
    getattr(library.utils.import_utils.is_torchaudio_available, "cache_clear", lambda: None)()
    return library


def how_to_install(module: str | None) -> str | None:
    """Return the command that installs a missing module, None if no extra of ours brings it."""
    try:
        requirements = metadata.requires("hyptrans") or []
    except metadata.PackageNotFoundError:
        # a checkout that was not installed
        return None
    wanted = (module or "").partition(".")[0]
    if wanted == "fairseq":
        return _install("fairseq")
    for found in filter(None, map(_OF_EXTRA.match, requirements)):
        if found[1].lower().replace("-", "_") == wanted and found[2] not in _OURS:
            return _install(found[2])
    return None


def _install(extra: str) -> str:
    command = f"pip install 'hyptrans[{extra}]'"
    # an extra cannot bring it, as it asks for libraries of 2020
    return f"{command} && {_FAIRSEQ}" if extra == "fairseq" else command
