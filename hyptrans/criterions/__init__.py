"""Criterions for fairseq; importing this package registers them."""

from hyptrans.criterions import geodesic, tiled

__all__ = ["geodesic", "tiled"]
