"""Optimizers and schedules for fairseq; importing this package registers them.

It also has every trainer check its flags and log the statistics of points.
"""

from hyptrans.optim import guard, noam, riemannian_adam, statistics

__all__ = ["noam", "riemannian_adam"]

guard.install()
statistics.install()
