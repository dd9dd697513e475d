"""Hyperbolic Transformers for fairseq: ``--user-dir hyptrans --arch hybonet_base``."""

__version__ = "0.2.0"
