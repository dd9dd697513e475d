"""The commands of ``python -m probing``."""
