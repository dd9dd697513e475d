"""The fairseq plug-in: code that fairseq calls, around parts that need no fairseq.

Importing this package lets fairseq run (``hyptrans_startup``), registers architectures, criterions,
optimizer and schedule, and wraps the functions that fairseq silently gets wrong.
"""

import sys

import hyptrans_startup
from hyptrans.support.extras import require

if "fairseq" in sys.modules and hyptrans_startup.Finder not in sys.meta_path:
    raise ImportError("fairseq was imported before hyptrans.fairseq: import the latter first")
hyptrans_startup.install()
require("fairseq", "fairseq")

import hyptrans.models  # noqa: E402, F401 - names the architectures
from hyptrans.fairseq import (  # noqa: E402
    architectures,
    geodesic,
    literals,
    model,
    noam,
    repairs,
    riemannian_adam,
    training,
)
from hyptrans.seq2seq.architectures import watch  # noqa: E402

__all__ = ["architectures", "geodesic", "model", "noam", "repairs", "riemannian_adam", "training"]

watch(architectures.register)
literals.install()
