"""Find a model by its name and load it."""

import importlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hyptrans.support.errors import UserError
from hyptrans.support.extras import require
from hyptrans.support.logs import quiet

if TYPE_CHECKING:
    from hyptrans.inference.contents import Contents
    from hyptrans.inference.translator import Translator

MODEL_HELP = "model folder, checkpoint, name of a model of the package, or user/name of the hub"
SHIPPED = Path(__file__).resolve().parents[1] / "pretrained"
# a name that begins with a point is a path
_REPOSITORY = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")


def load(
    place: str | os.PathLike[str],
    *,
    data: str | os.PathLike[str] | None = None,
    subword_models: Mapping[str, str | os.PathLike[str] | None] | None = None,
    moses: bool = False,
    device: str = "cpu",
) -> "Translator":
    """Load a translation model; :func:`hyptrans.load` describes it.

    Raises:
        UserError: there is no such model, or it cannot be used.
    """
    with quiet():
        from hyptrans.inference.translator import Translator

        contents = read(place, data=data, subword_models=subword_models, moses=moses)
        return Translator(contents, device)


def read(
    place: str | os.PathLike[str],
    *,
    data: str | os.PathLike[str] | None = None,
    subword_models: Mapping[str, str | os.PathLike[str] | None] | None = None,
    moses: bool = False,
) -> "Contents":
    """What a model is made of; the arguments are those of :func:`load`.

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
    where = None if data is None else Path(data)
    require("fairseq", "fairseq")
    checkpoint = importlib.import_module("hyptrans.fairseq.checkpoint")
    return checkpoint.read(found, where, subword_models=subword_models, moses=moses)


def shipped() -> list[str]:
    """Names of the models that come with the package."""
    folders = SHIPPED.iterdir() if SHIPPED.is_dir() else ()
    return sorted(path.name for path in folders if path.is_dir())


def locate(place: str | os.PathLike[str]) -> Path:
    """The file or folder that a name means.

    That of the name itself, or else a model that comes with the package, or else a repository of
    the hub, ``user/name``, which is fetched unless it was before.

    Raises:
        UserError: none of these.
    """
    name = os.fspath(place)
    if name and Path(name).exists():
        return Path(name)
    if name in shipped():
        return SHIPPED / name
    known = ", ".join(shipped()) or "none"
    nothing = (
        f"{name or 'an empty name'} is neither a file or folder, nor a model that comes with "
        f"hyptrans ({known})"
    )
    # a folder of that name is here, or the name is that of a checkpoint: something in it is missing
    is_path = name.endswith(".pt") or Path(name).parent.is_dir()
    if is_path or not _REPOSITORY.fullmatch(name):
        raise UserError(f"{nothing}, nor a repository user/name")
    from hyptrans.inference.sharing.hub import fetch

    try:
        return fetch(name)
    except UserError as error:
        raise UserError(f"{nothing}; as a repository: {error}") from error
