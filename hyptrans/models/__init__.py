"""Architectures, one per file; importing this package registers all of them.

fairseq imports the files in the ``models`` folder of a user directory. One of them,
:mod:`hyptrans.models.with_fairseq`, registers the architectures with fairseq.
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
    """A package that can be called: ``hyptrans.models()`` still works once this is imported."""

    def __call__(self) -> list[str]:
        return _listed()


sys.modules[__name__].__class__ = _Package
