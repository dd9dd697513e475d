"""Architectures, a file each; importing this package names them all.

fairseq imports the files of a user directory's ``models``, :mod:`hyptrans.models.with_fairseq`
among them, which registers them.
"""

import importlib
import pkgutil
import sys
from types import ModuleType

import hyptrans

_DOOR = "with_fairseq"

for _module in pkgutil.iter_modules(__path__):
    if _module.name != _DOOR:
        importlib.import_module(f"{__name__}.{_module.name}")


_listed = hyptrans.models


class _Package(ModuleType):
    """From now on this package is what ``hyptrans.models()`` calls."""

    def __call__(self) -> list[str]:
        return _listed()


sys.modules[__name__].__class__ = _Package
