"""The commands of ``hyptrans probe``."""
