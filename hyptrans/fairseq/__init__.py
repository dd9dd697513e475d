"""The fairseq plug-in: code that fairseq calls, around parts that need no fairseq.

Importing this package lets fairseq run (``hyptrans_startup``), registers architectures, criterions,
optimizer and schedule, and wraps the functions that fairseq silently gets wrong.
"""

import os
import sys

import hyptrans_startup
from hyptrans.support.errors import UserError
from hyptrans.support.extras import MissingExtra, require

if "fairseq" in sys.modules and hyptrans_startup.Finder not in sys.meta_path:
    raise ImportError("fairseq was imported before hyptrans.fairseq: import the latter first")
if os.environ.get("HYPTRANS_STARTUP") != "0":
    hyptrans_startup.install()
try:
    require("fairseq", "fairseq")
except (ValueError, AttributeError, ImportError) as error:
    if isinstance(error, MissingExtra) or hyptrans_startup.Finder in sys.meta_path:
        raise
    raise UserError(f"{hyptrans_startup.OFF} ({error})") from error

import hyptrans.models  # noqa: F401 - names the architectures
from hyptrans.fairseq import (
    architectures,
    geodesic,
    literals,
    noam,
    repairs,
    riemannian_adam,
    tiled,
)
from hyptrans.fairseq.training import guard, not_finite, resuming
from hyptrans.seq2seq.architectures import watch

__all__ = ["architectures", "geodesic", "noam", "riemannian_adam", "tiled"]
__all__ += ["guard", "not_finite", "repairs", "resuming"]

watch(architectures.register)
literals.install()
