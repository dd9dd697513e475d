"""Architectures, a file each; importing this package names them all.

fairseq imports the files of a user directory's ``models``, :mod:`hyptrans.models.with_fairseq`
among them, which registers them.
"""

import importlib
import pkgutil

_DOOR = "with_fairseq"

for _module in pkgutil.iter_modules(__path__):
    if _module.name != _DOOR:
        importlib.import_module(f"{__name__}.{_module.name}")
