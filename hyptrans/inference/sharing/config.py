"""Read a model folder's configuration, dictionaries and text rules, without torch."""

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
"""Format of ``config.json``; grows when older versions of this package could not read it."""
MODEL_TYPE = "hyptrans"
"""Name by which the library transformers recognizes a model folder."""
DICTIONARIES = "dictionaries"
"""Key of both dictionaries' fingerprints in a configuration; 0.2.0 wrote none."""
GRAPHS = ("encoder.onnx", "decoder.onnx")
FILES = [CONFIG, WEIGHTS, CARD, "dict.*.txt", *GRAPHS, *subwords.MODEL_NAMES.values()]
"""Patterns of a model folder's file names."""
_FACTS: Mapping[str, tuple[type, type]] = {
    **dict.fromkeys(("license", "dataset", "test", "command"), (str, str)),
    **dict.fromkeys(("updates", "beam"), (int, int)),
    **{"data": (dict, str), "scores": (list, dict), AVERAGED: (list, int)},
}
"""Names of the training's facts, with their types and, for lists, the types of the items."""
_MOST_BYTES = 64 << 20
"""Most bytes of a file other than the parameters; real ones have a hundredth of that."""
POINTER = b"version https://git-lfs.github.com/spec/"


def read(folder: Path) -> Contents:
    """Read a model folder except its parameters; do not check architecture and options.

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
    """Return the configuration of a model folder of any format.

    Raises:
        UserError: the folder has no configuration, or one that is not of a model folder.
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
    """Raise UserError for the pointer that Git leaves in place of a file without Git LFS."""
    if content.startswith(POINTER):
        raise UserError(f"{path} is a pointer of Git LFS, not the file: run git lfs pull there")


def _mapping(config: Mapping[str, Any], key: str) -> dict[str, Any]:
    found = config.get(key)
    if not isinstance(found, dict):
        raise UserError(f"its {key} are missing")
    return found


def _facts(path: Path, found: Any) -> dict[str, Any]:
    """Return the facts of the training that ``folder.write`` stores, without others.

    Raises:
        UserError: a fact has the wrong type.
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
        # the original message tells how to mend a data folder
        raise UserError(f"{path} is damaged: export the model again") from error
