"""What the libraries beneath log."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet() -> Iterator[None]:
    """Log warnings alone, and take back that fairseq configures the logging of its importer."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    before = root.manager.disable
    logging.disable(logging.INFO)
    try:
        yield
    finally:
        logging.disable(before)
        root.handlers[:] = handlers
        root.setLevel(level)
