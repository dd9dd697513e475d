"""Criterions for fairseq; importing this package registers them."""

from hyptrans.criterions import geodesic

__all__ = ["geodesic"]
