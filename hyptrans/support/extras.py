"""Modules that come with an optional extra of the package: import them, or say how to get them."""

import importlib
import inspect
from types import ModuleType


def require(module: str, extra: str) -> ModuleType:
    """Import a module of an optional extra.

    Args:
        module: its name, for example ``conllu`` or ``scipy.stats``.
        extra: the extra of this package that installs it.

    Raises:
        ModuleNotFoundError: it is not installed; the message is the command that installs it. A
            module that is there but misses one of its own is an error of its own.
    """
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        caller = inspect.stack()[1].frame.f_globals.get("__name__", "this command")
        message = f"{caller} needs {package}: pip install 'hyptrans[{extra}]'"
        raise ModuleNotFoundError(message, name=package) from None
