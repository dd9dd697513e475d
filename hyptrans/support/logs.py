"""Control the logging of libraries."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_entered: list[tuple[list[logging.Handler], int, int]] = []
"""The logging state at each entry into the block; the first one is restored at the end."""


@contextmanager
def quiet() -> Iterator[None]:
    """Log only warnings and errors, and undo fairseq's change of its importer's logging."""
    root = logging.getLogger()
    with _lock:
        _entered.append((root.handlers[:], root.level, root.manager.disable))
        logging.disable(logging.INFO)
    try:
        yield
    finally:
        with _lock:
            handlers, level, disabled = _entered.pop()
            # only the last of several threads restores the state
            if not _entered:
                logging.disable(disabled)
                root.handlers[:] = handlers
                root.setLevel(level)
