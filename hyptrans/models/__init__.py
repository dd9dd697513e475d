"""fairseq models; importing this package registers every architecture, optimizer and scheduler.

fairseq imports the files of a user directory's ``models`` only if the package was not imported
before, and never its ``optim`` or ``criterions``: hence the imports here.
"""

import importlib
import pkgutil

import hyptrans.criterions
import hyptrans.optim  # noqa: F401 - both register what they define

for _module in pkgutil.iter_modules(__path__):
    if not _module.name.startswith("_"):
        importlib.import_module(f"{__name__}.{_module.name}")
