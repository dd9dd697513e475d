"""Optimizers and schedules for fairseq; importing this package registers them."""

from hyptrans.optim import noam, riemannian_adam
from hyptrans.optim.guard import install

__all__ = ["noam", "riemannian_adam"]

install()
