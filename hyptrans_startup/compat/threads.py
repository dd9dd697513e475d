"""Threads of a busy machine: how long one of them waits in a loop before it sleeps."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

SPIN_COUNT = "1000"
"""Rounds of libgomp's waiting loop. The default, some milliseconds, makes a training on all cores
several times slower as soon as another program runs: the threads that have a core wait for the one
that has none."""


@contextmanager
def threads_spin(module: ModuleType) -> Iterator[None]:
    """A training beside another program, a thread a core: a fraction of its speed.

    Nothing is changed where the user says how threads wait, or where torch has read it already.
    """
    said = {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & os.environ.keys()
    if not said and "torch" not in sys.modules:
        os.environ["GOMP_SPINCOUNT"] = SPIN_COUNT
    yield
