"""Hyperbolic Transformers for fairseq: ``fairseq-train … --user-dir hyptrans --arch hybonet_base``."""

__version__ = "0.1.0"
