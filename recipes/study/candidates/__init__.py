"""Register the models that the study tries and the package lacks.

This is a fairseq plug-in, ``--user-dir recipes/study/candidates``. To add a model, write a file
here that registers ``NAME_tiny`` and ``NAME_iwslt_d64`` (``register_sizes``), import it below, and
add a section ``[NAME]`` to ``models.ini`` and rates to ``plan.py``; the tests of all architectures
find it automatically. Commits c174f7c and eb4cf1e hold candidates that led nowhere.
"""

import hyptrans.fairseq  # noqa: F401 - registers the package's parts with fairseq

from . import lorentz_shell

__all__ = ["lorentz_shell"]
