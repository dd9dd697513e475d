"""Hyperbolic Transformers for fairseq: ``--user-dir hyptrans --arch hybonet_base``."""

import importlib

from hyptrans.inference.load import load, shipped
from hyptrans.support.errors import UserError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hyptrans.geometry.space import Space
    from hyptrans.inference.translator import Translator

__version__ = "0.3.0"
__all__ = ["Space", "Translator", "UserError", "__version__", "load", "models"]
PUBLIC = (
    *("hyptrans.load", "hyptrans.models", "hyptrans.UserError"),
    *(f"hyptrans.inference.{name}" for name in ("translator", "options.SearchOptions", "results")),
    *(f"hyptrans.geometry.{n}" for n in ("lorentz", "riemannian", "poincare", "klein", "space")),
    *(f"hyptrans.layers.{name}" for name in ("hybonet", "han", "curvature", "hypformer", "hvt")),
    "hyptrans.evaluation.significance",
)
"""Public functions, and modules whose names are all public; the changelog lists their changes."""
_NEED_TORCH = {"Space": "hyptrans.geometry.space", "Translator": "hyptrans.inference.translator"}
"""The module of each name that is imported on first use, as it imports torch."""


def models() -> list[str]:
    """Return the names of the models that come with this package, for :func:`load`."""
    return shipped()


def __getattr__(name: str) -> object:
    if name not in _NEED_TORCH:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_NEED_TORCH[name]), name)
