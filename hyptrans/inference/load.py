"""Find a model by its name and load it."""

import importlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from hyptrans.support.errors import UserError

if TYPE_CHECKING:
    from hyptrans.inference.contents import Contents
    from hyptrans.inference.translator import Translator

StrPath = str | os.PathLike[str]
MODEL_HELP = "model folder, checkpoint, name of a bundled model, or user/name on the hub"
SHIPPED = Path(__file__).resolve().parents[1] / "pretrained"


def load(
    place: StrPath | Sequence[StrPath] | None = None,
    *,
    data: StrPath | None = None,
    subword_models: Mapping[str, StrPath | None] | None = None,
    moses: bool = False,
    device: str = "cpu",
    dtype: Any = "float32",
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
    places = [place] if isinstance(place, str | os.PathLike) else list(place or ())
    if not places:
        raise UserError(
            f"no model is named: hyptrans.models() lists those of this package "
            f"({', '.join(shipped()) or 'none'}); others are a {MODEL_HELP}"
        )
    # first, since importing torch takes seconds
    found = [locate(one, revision=revision, token=token) for one in places]
    if engine != "torch":
        of_torch = (device != "cpu", dtype != "float32", data, subword_models, moses)
        return _by_onnx(found, engine, plain=not any(of_torch))
    # here, so that importing the package stays fast
    from hyptrans.support.extras import MissingExtra, require
    from hyptrans.support.logs import quiet

    try:
        require("torch", "torch")
    except MissingExtra as error:
        raise MissingExtra(f"{error}, or choose the engine onnx", name="torch") from error
    with quiet():
        import torch

        from hyptrans.inference.translator import Translator

        # whatever the caller's default device is
        with torch.device("cpu"):
            contents = [
                read(one, data=data, subword_models=subword_models, moses=moses) for one in found
            ]
            return Translator(*contents, device=device, dtype=dtype)


def _by_onnx(places: Sequence[Path], engine: str, *, plain: bool) -> "Translator":
    if engine != "onnx":
        raise UserError(f"engine must be torch or onnx, got {str(engine)[:40]}")
    if not plain:
        raise UserError(
            "engine onnx computes in float32 on the CPU, from a model folder that brings its text "
            "processing: leave device, dtype, data and subword models out"
        )
    for place in places:
        if not place.is_dir():
            raise UserError(f"{place} is not a model folder: hyptrans export makes one with --onnx")
    from hyptrans.inference.onnx.engine import OnnxTranslator

    # it lacks the methods that need torch; a type of its own would hide those of all other models
    return cast("Translator", OnnxTranslator(*places))


def read(
    place: StrPath,
    *,
    data: StrPath | None = None,
    subword_models: Mapping[str, StrPath | None] | None = None,
    moses: bool = False,
) -> "Contents":
    """Read the contents of a model; the arguments are those of :func:`load`.

    Raises:
        UserError: there is no such model, or a part of it is missing or damaged.
    """
    from hyptrans.inference.sharing import folder

    found = locate(place)
    if found.is_dir():
        if data is not None or subword_models or moses:
            raise UserError(
                f"{place} is a model folder, which brings its text processing: data and subword "
                "models are for checkpoints, leave them out"
            )
        return folder.read(found)
    with open(found, "rb") as file:
        # of an archive, or of a pickle by an old version of torch
        if file.read(1) not in (b"P", b"\x80"):
            raise UserError(f"checkpoint {place} is no file of torch: name a model folder instead")
    where = None if data is None else Path(data)
    checkpoint = importlib.import_module("hyptrans.fairseq.checkpoint")
    return checkpoint.read(found, where, subword_models=subword_models, moses=moses)


def shipped() -> list[str]:
    """Return the names of the models that come with the package."""
    folders = SHIPPED.iterdir() if SHIPPED.is_dir() else ()
    return sorted(path.name for path in folders if path.is_dir())


def locate(place: StrPath, *, revision: str | None = None, token: str | None = None) -> Path:
    """Return the file or folder that a name means.

    The name may be a path, else a model that comes with the package, else a repository of the hub,
    ``user/name``, which is fetched unless it already was.

    Raises:
        UserError: it is none of these, or a revision or token is given for what is not on the hub.
    """
    name = os.fspath(place)
    here = Path(name) if name and Path(name).exists() else None
    here = SHIPPED / name if here is None and name in shipped() else here
    if here is not None:
        if revision is not None or token is not None:
            raise UserError(f"{name} is not a repository of the hub: leave revision and token out")
        return here
    known = ", ".join(shipped()) or "none"
    nothing = (
        f"{name or 'an empty name'} is neither a file nor a folder, nor a model that comes with "
        f"hyptrans ({known})"
    )
    # if the parent folder exists or the name is a checkpoint's, it is a path to a missing file
    is_path = name.endswith(".pt") or Path(name).parent.is_dir()
    from hyptrans.inference.sharing.hub import REPOSITORY, fetch

    if is_path or not REPOSITORY.fullmatch(name):
        raise UserError(f"{nothing}, nor a repository user/name")

    try:
        return fetch(name, revision, token)
    except UserError as error:
        raise UserError(f"{nothing}; as a repository: {error}") from error
