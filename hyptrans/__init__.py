"""Hyperbolic Transformers for fairseq: ``--user-dir hyptrans --arch hybonet_base``."""

__version__ = "0.1.0"
