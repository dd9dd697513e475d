"""What the libraries beneath log."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_before: list[tuple[list[logging.Handler], int, int]] = []
"""How it was before the first of those that are inside, once for each of them."""


@contextmanager
def quiet() -> Iterator[None]:
    """Log warnings alone, and take back that fairseq configures the logging of its importer."""
    root = logging.getLogger()
    with _lock:
        now = (root.handlers[:], root.level, root.manager.disable)
        _before.append(_before[0] if _before else now)
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
