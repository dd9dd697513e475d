"""What the libraries beneath log."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_inside: list[bool] = []
_before: list[tuple[list[logging.Handler], int, int]] = []


@contextmanager
def quiet() -> Iterator[None]:
    """Log warnings alone, and take back that fairseq configures the logging of its importer."""
    root = logging.getLogger()
    with _lock:
        if not _inside:
            _before.append((root.handlers[:], root.level, root.manager.disable))
            logging.disable(logging.INFO)
        _inside.append(True)
    try:
        yield
    finally:
        with _lock:
            _inside.pop()
            # of several threads, the last one
            if not _inside:
                handlers, level, disabled = _before.pop()
                logging.disable(disabled)
                root.handlers[:] = handlers
                root.setLevel(level)
