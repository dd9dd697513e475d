"""What registers with fairseq, and what it calls; all of it round parts that need no fairseq.

Importing this package registers criterions, optimizer and schedule, and has every trainer check its
flags and log the statistics of points. Importing :mod:`hyptrans.models` does so too, and registers
the architectures.
"""

from hyptrans.fairseq import config, geodesic, noam, riemannian_adam, tiled
from hyptrans.fairseq.training import guard, statistics
from hyptrans_startup import plugin

__all__ = ["geodesic", "noam", "riemannian_adam", "tiled"]

guard.install()
statistics.install()
plugin.register(option_bounds={"curvature": config.CURVATURES})
