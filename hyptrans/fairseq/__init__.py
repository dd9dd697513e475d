"""What registers with fairseq, and what it calls; all of it round parts that need no fairseq.

Importing this package registers architectures, criterions, optimizer and schedule, and has every
trainer check its flags and log the statistics of points.
"""

import hyptrans.models  # noqa: F401 - names the architectures
from hyptrans.fairseq import architectures, geodesic, noam, riemannian_adam, tiled
from hyptrans.fairseq.training import guard, statistics
from hyptrans.seq2seq.architectures import watch

__all__ = ["architectures", "geodesic", "noam", "riemannian_adam", "tiled"]

watch(architectures.register)
guard.install()
statistics.install()
