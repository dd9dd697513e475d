"""Register everything with fairseq, which imports the files in a user directory's ``models``."""

import hyptrans.fairseq  # noqa: F401
