"""Registers everything with fairseq, which imports the files of a user directory's ``models``."""

import hyptrans.fairseq  # noqa: F401
