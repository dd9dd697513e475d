"""What the libraries beneath log."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_before: list[tuple[list[logging.Handler], int, int]] = []
"""How it was when each of those that are inside came; of the first, that is what comes back."""


@contextmanager
def quiet() -> Iterator[None]:
    """Log warnings alone, and take back that fairseq configures the logging of its importer."""
    root = logging.getLogger()
    with _lock:
        _before.append((root.handlers[:], root.level, root.manager.disable))
        logging.disable(logging.INFO)
    try:
        yield
    finally:
        with _lock:
            handlers, level, disabled = _before.pop()
            # of several threads, the last one
            if not _before:
                logging.disable(disabled)
                root.handlers[:] = handlers
                root.setLevel(level)
