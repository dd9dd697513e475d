"""Hyperbolic Transformers for fairseq: ``--user-dir hyptrans --arch hybonet_base``."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from hyptrans.inference.translator import Translator

__version__ = "0.2.0"
__all__ = ["__version__", "load"]


def load(
    place: "str | os.PathLike[str]",
    *,
    data: "str | os.PathLike[str] | None" = None,
    subword_models: "Mapping[str, str | os.PathLike[str] | None] | None" = None,
    moses: bool = False,
    device: str = "cpu",
) -> "Translator":
    """Load a translation model: ``hyptrans.load("tatoeba-en-de").translate(["Good night."])``.

    Nothing that a folder or a checkpoint brings is run.

    Args:
        place: a model folder, as ``hyptrans export`` writes it; a checkpoint of ``fairseq-train``;
            the name of a model that comes with this package; or a repository ``user/name`` of the
            Hugging Face hub.
        data: for a checkpoint, the folder that ``data-prep/`` wrote, by default the one that it was
            trained on.
        subword_models: for a checkpoint whose data folder does not say it, the file of its subword
            model by kind, ``{"sentencepiece": path}`` or ``{"subword-nmt": path}``;
            ``{"none": None}`` where tokens stand between spaces.
        moses: with ``subword_models``, text is tokenized as Moses does.
        device: where the model computes, ``cpu`` or ``cuda``.

    Raises:
        hyptrans.support.errors.UserError: there is no such model, or it cannot be used; one
            sentence says why.
    """
    from hyptrans.inference.load import load as load_

    return load_(place, data=data, subword_models=subword_models, moses=moses, device=device)
