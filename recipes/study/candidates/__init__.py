"""Models that the study tries and the package does not have.

A plug-in of fairseq, ``--user-dir recipes/study/candidates``. A further one is a file here that
registers ``NAME_tiny`` and ``NAME_iwslt_d64`` (``register_sizes``), its line below, a section
``[NAME]`` in ``models.ini`` and its rates in ``plan.py``; the tests of all architectures find it by
themselves. Candidates that led nowhere are in commits c174f7c and eb4cf1e.
"""

import hyptrans.fairseq  # noqa: F401 - registers what is named with fairseq

from . import lorentz_shell

__all__ = ["lorentz_shell"]
