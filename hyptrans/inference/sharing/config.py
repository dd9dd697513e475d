"""What a model folder says of itself: configuration, dictionaries and text; read without torch."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hyptrans import __version__
from hyptrans.data import subwords
from hyptrans.inference import text
from hyptrans.inference.contents import AVERAGED, Contents, checked_languages, dictionary_file
from hyptrans.inference.dictionary import Dictionary, fingerprint
from hyptrans.support.errors import UserError
from hyptrans.support.files import read_json

CONFIG, WEIGHTS, CARD = "config.json", "model.safetensors", "README.md"
FORMAT = 1
"""Of ``config.json``; grows when an older version of this package could not read it."""
MODEL_TYPE = "hyptrans"
"""By which the library transformers knows a model folder."""
DICTIONARIES = "dictionaries"
"""Of a configuration, the fingerprints of both; 0.2.0 wrote none."""
GRAPHS = ("encoder.onnx", "decoder.onnx")
FILES = [CONFIG, WEIGHTS, CARD, "dict.*.txt", *GRAPHS, *subwords.MODEL_NAMES.values()]
"""Patterns of the names of its files."""
_FACTS: Mapping[str, tuple[type, type]] = {
    **dict.fromkeys(("license", "dataset", "test", "command"), (str, str)),
    **dict.fromkeys(("updates", "beam"), (int, int)),
    **{"data": (dict, str), "scores": (list, dict), AVERAGED: (list, int)},
}
"""Names of facts of the training, with their types and those of the parts of a list."""
_MOST_BYTES = 64 << 20
"""Of a file other than the parameters; real ones have a hundredth of it."""
POINTER = b"version https://git-lfs.github.com/spec/"


def read(folder: Path) -> Contents:
    """Read all of a model folder but its parameters; architecture and options are not checked.

    Raises:
        UserError: a file is missing, damaged, or of another version.
    """
    config = _config(folder)
    try:
        options = _mapping(config, "options")
        languages = checked_languages(config.get("languages"))
    except UserError as error:
        raise UserError(f"{folder / CONFIG} cannot be used: {error}") from error
    dictionaries = (_dictionary(folder, languages[0]), _dictionary(folder, languages[1]))
    if config.get(DICTIONARIES, fingerprints(dictionaries)) != fingerprints(dictionaries):
        raise UserError(
            f"{folder}: a dictionary is not the one that the model was exported with: export the "
            "model again"
        )
    return Contents(
        place=str(folder),
        architecture=str(config.get("architecture")),
        options=options,
        languages=languages,
        dictionaries=dictionaries,
        parameters={},
        text=text.from_json(config.get("text"), folder, languages),
        facts=_facts(folder / CONFIG, config.get("facts")),
    )


def fingerprints(dictionaries: Sequence[Dictionary]) -> dict[str, str]:
    """Return the fingerprints of both dictionaries, as a configuration has them."""
    return dict(zip(("source", "target"), map(fingerprint, dictionaries), strict=True))


def own_config(folder: Path) -> dict[str, Any]:
    """The configuration of a model folder of any format.

    Raises:
        UserError: the folder has none, or it is not of a model folder.
    """
    path = folder / CONFIG
    try:
        config = read_json(_small_file(path).decode("utf-8-sig"))
    except ValueError as error:
        raise UserError(f"{path} is damaged: it is no object of JSON") from error
    if config.get("library_name") != "hyptrans":
        raise UserError(f"{path} is not of a model folder that hyptrans export wrote")
    return config


def _config(folder: Path) -> dict[str, Any]:
    config = own_config(folder)
    if config.get("format") != FORMAT:
        version, number = (str(config.get(key))[:40] for key in ("hyptrans_version", "format"))
        raise UserError(
            f"{folder} was written by hyptrans {version} in format {number}, this "
            f"version, {__version__}, reads format {FORMAT}: install that one, or export it again"
        )
    return config


def _small_file(path: Path) -> bytes:
    if not path.is_file():
        raise UserError(f"{path} is missing: name a folder that hyptrans export wrote")
    size = path.stat().st_size
    if size > _MOST_BYTES:
        raise UserError(f"{path} has {size:,} bytes, no model folder has more than {_MOST_BYTES:,}")
    content = path.read_bytes()
    check_pointer(path, content)
    return content


def check_pointer(path: Path, content: bytes) -> None:
    """Raise for what Git leaves of a large file where Git LFS is not installed."""
    if content.startswith(POINTER):
        raise UserError(f"{path} is a pointer of Git LFS, not the file: run git lfs pull there")


def _mapping(config: Mapping[str, Any], key: str) -> dict[str, Any]:
    found = config.get(key)
    if not isinstance(found, dict):
        raise UserError(f"its {key} are missing")
    return found


def _facts(path: Path, found: Any) -> dict[str, Any]:
    """The facts of the training that :func:`write` knows; others are left out.

    Raises:
        UserError: one is of another type.
    """
    found = found if isinstance(found, dict) else {}
    facts = {name: found[name] for name in _FACTS if found.get(name) is not None}
    for name, value in facts.items():
        kind, part = _FACTS[name]
        parts = value if isinstance(value, list) else ()
        if not isinstance(value, kind) or not all(isinstance(one, part) for one in parts):
            raise UserError(f"{path} is damaged: its {name} is not what hyptrans export writes")
    for score in facts.get("scores", ()):
        kinds = {"name": str, "signature": str, "value": float}
        if not all(isinstance(score.get(name), kind) for name, kind in kinds.items()):
            raise UserError(f"{path} is damaged: its scores is not what hyptrans export writes")
    return facts


def _dictionary(folder: Path, language: str) -> Dictionary:
    path = dictionary_file(folder, language)
    _small_file(path)
    try:
        return Dictionary.load(path)
    except UserError as error:
        # its own words on how to mend it are for data folders
        raise UserError(f"{path} is damaged: export the model again") from error
