"""Architectures, a file each; importing this package registers them and all else for fairseq.

fairseq imports the files of a user directory's ``models`` only if the package was not imported
before, and nothing else that registers: hence the imports here.
"""

import importlib
import pkgutil

import hyptrans.fairseq  # noqa: F401 - registers what it defines

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
