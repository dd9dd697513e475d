"""Hyperbolic Transformers for fairseq: ``--user-dir hyptrans --arch hybonet_base``."""

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence
    from typing import Any

    from hyptrans.geometry.space import Space
    from hyptrans.inference.translator import Translator
    from hyptrans.support.errors import UserError

__version__ = "0.3.0"
__all__ = ["Space", "Translator", "UserError", "__version__", "load", "models"]
PUBLIC = (
    *("hyptrans.load", "hyptrans.models", "hyptrans.UserError"),
    *(f"hyptrans.inference.{name}" for name in ("translator", "options.SearchOptions", "results")),
    *(f"hyptrans.geometry.{name}" for name in ("lorentz", "poincare", "klein", "space")),
    *(f"hyptrans.layers.{name}" for name in ("hybonet", "han", "curvature", "hypformer", "hvt")),
    "hyptrans.evaluation.significance",
)
"""Public functions, and modules whose names are all public; the changelog lists their changes."""
_PLACES = {
    "Space": "hyptrans.geometry.space",
    "Translator": "hyptrans.inference.translator",
    "UserError": "hyptrans.support.errors",
}
"""The module of each name that is imported on first use."""


def load(
    place: "str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None" = None,
    *,
    data: "str | os.PathLike[str] | None" = None,
    subword_models: "Mapping[str, str | os.PathLike[str] | None] | None" = None,
    moses: bool = False,
    device: str = "cpu",
    dtype: "Any" = "float32",
    engine: str = "torch",
    revision: str | None = None,
    token: str | None = None,
) -> "Translator":
    """Load a translation model: ``hyptrans.load("tatoeba-en-de").translate("Good night.")``.

    No code from a folder or a checkpoint runs.

    Args:
        place: a model folder, as ``hyptrans export`` writes it; a checkpoint of ``fairseq-train``;
            a name of :func:`hyptrans.models`; or a repository ``user/name`` of the Hugging Face
            hub. Several make an ensemble, which averages probabilities; they need the same
            languages, dictionaries and subwords.
        data: for a checkpoint, the folder that ``hyptrans prepare`` wrote, by default the one that
            it was trained on.
        subword_models: for a checkpoint whose data folder does not record it, the file of its
            subword model by kind, ``{"sentencepiece": path}`` or ``{"subword-nmt": path}``;
            ``{"none": None}`` if tokens are separated by spaces.
        moses: with ``subword_models``, text is tokenized as Moses does.
        device: where the model computes, ``cpu`` or ``cuda``; ``auto`` takes ``cuda`` if available.
        dtype: number format to compute in, ``float32`` or ``float64``.
        engine: ``torch``, or ``onnx`` for the graphs that ``hyptrans export --onnx`` adds to a
            model folder, which need no torch. Such a model translates, but does not score, align
            or encode.
        revision: branch, tag or commit of a repository.
        token: access token for private repositories; by default that of the hub's login.

    Raises:
        hyptrans.UserError: there is no such model, or it cannot be used; one sentence says why.
    """
    from hyptrans.inference.load import load as load_

    return load_(
        place,
        data=data,
        subword_models=subword_models,
        moses=moses,
        device=device,
        dtype=dtype,
        engine=engine,
        revision=revision,
        token=token,
    )


def models() -> list[str]:
    """Return the names of the models that come with this package, for :func:`load`."""
    from hyptrans.inference.load import shipped

    return shipped()


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_PLACES[name]), name)
