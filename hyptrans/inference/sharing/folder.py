"""A model folder: parameters without pickle, options, dictionaries, subword model and card."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from hyptrans import __version__
from hyptrans.data import subwords
from hyptrans.inference import text
from hyptrans.inference.architecture import check_options, one_sentence, require_known
from hyptrans.inference.contents import AVERAGED, Contents, checked_languages, dictionary_file
from hyptrans.inference.dictionary import Dictionary, fingerprint
from hyptrans.seq2seq.architectures import ARCHITECTURES
from hyptrans.support import provenance
from hyptrans.support.errors import UserError, unquoted
from hyptrans.support.files import put_in_place, read_json, whole_file, write_json, write_whole

CONFIG, WEIGHTS, CARD = "config.json", "model.safetensors", "README.md"
FORMAT = 1
"""Of ``config.json``; grows when an older version of this package could not read it."""
MODEL_TYPE = "hyptrans"
"""By which the library transformers knows a model folder."""
PRECISIONS: Mapping[str, torch.dtype] = {"half": torch.float16, "full": torch.float32}

_DICTIONARIES = "dictionaries"
"""Of a configuration, the fingerprints of both; 0.2.0 wrote none."""
FILES = [CONFIG, WEIGHTS, CARD, "dict.*.txt", *subwords.MODEL_NAMES.values()]
"""Patterns of the names of its files."""
_FACTS: Mapping[str, tuple[type, type]] = {
    **dict.fromkeys(("license", "dataset", "test", "command"), (str, str)),
    **dict.fromkeys(("updates", "beam"), (int, int)),
    **{"data": (dict, str), "scores": (list, dict), AVERAGED: (list, int)},
}
"""Names of facts of the training, with their types and those of the parts of a list."""
_MOST_BYTES = 64 << 20
"""Of a file other than the parameters; real ones have a hundredth of it."""
_POINTER = b"version https://git-lfs.github.com/spec/"


def read(folder: Path, *, with_parameters: bool = True) -> Contents:
    """Read a folder that :func:`write` wrote; nothing in it is run.

    Args:
        folder: that it is.
        with_parameters: the contents have parameters; else there are none of them.

    Raises:
        UserError: a file is missing, damaged, or of another version.
    """
    config = _config(folder)
    try:
        architecture = require_known(config.get("architecture"))
        options = check_options(architecture, _mapping(config, "options"))
        languages = checked_languages(config.get("languages"))
    except UserError as error:
        raise UserError(f"{folder / CONFIG} cannot be used: {error}") from error
    dictionaries = (_dictionary(folder, languages[0]), _dictionary(folder, languages[1]))
    if config.get(_DICTIONARIES, _fingerprints(dictionaries)) != _fingerprints(dictionaries):
        raise UserError(
            f"{folder}: a dictionary is not the one that the model was exported with: export the "
            "model again"
        )
    return Contents(
        place=str(folder),
        architecture=architecture,
        options=options,
        languages=languages,
        dictionaries=dictionaries,
        parameters=_parameters(folder / WEIGHTS) if with_parameters else {},
        text=text.from_json(config.get("text"), folder, languages),
        facts=_facts(folder / CONFIG, config.get("facts")),
    )


def write(contents: Contents, folder: Path, *, card: str, precision: str = "half") -> None:
    """Write a folder, whole or not at all.

    Args:
        contents: what to write.
        folder: new, empty, or a model folder with nothing else in it, which is replaced.
        card: its ``README.md``.
        precision: of the parameters, one of ``PRECISIONS``.

    Raises:
        UserError: the folder holds something else, or numbers are too large for half precision,
            or the languages are no names.
    """
    try:
        languages = checked_languages(contents.languages)
    except UserError as error:
        raise UserError(f"{contents.place} cannot be written to {folder}: {error}") from error
    check_replaceable(folder)
    with _whole_folder(folder) as new:
        _write_parameters(contents, new / WEIGHTS, PRECISIONS[precision])
        write_text(languages, contents.dictionaries, contents.text, new)
        write_whole(new / CARD, card)
        write_json(new / CONFIG, as_json(contents, precision))


def write_text(
    languages: Sequence[str], dictionaries: Sequence[Dictionary], rules: text.TextRules, place: Path
) -> list[Path]:
    """Write both dictionaries, as fairseq does, and the subword model; returns their files."""
    written = []
    for language, dictionary in zip(languages, dictionaries, strict=True):
        rows = zip(dictionary.symbols, dictionary.count, strict=True)
        lines = [f"{symbol} {count}\n" for symbol, count in rows][dictionary.nspecial :]
        written.append(dictionary_file(place, language))
        write_whole(written[-1], "".join(lines))
    if rules.model is not None and rules.model_name is not None:
        content = Path(rules.model).read_bytes()
        written.append(place / rules.model_name)
        with whole_file(written[-1]) as file:
            file.write(content)
    return written


def as_json(contents: Contents, precision: str) -> dict[str, Any]:
    """The configuration of a folder, with what the library transformers wants to find in it."""
    source, target = map(len, contents.dictionaries)
    return {
        "library_name": "hyptrans",
        "model_type": MODEL_TYPE,
        "format": FORMAT,
        "hyptrans_version": __version__,
        "architecture": contents.architecture,
        "options": dict(contents.options),
        "languages": list(contents.languages),
        "source_vocab_size": source,
        "vocab_size": target,
        _DICTIONARIES: _fingerprints(contents.dictionaries),
        "text": contents.text.as_json(),
        "precision": precision,
        "facts": dict(contents.facts),
        "versions": provenance.versions("torch", "fairseq", "sentencepiece"),
    }


def _fingerprints(dictionaries: Sequence[Dictionary]) -> dict[str, str]:
    return dict(zip(("source", "target"), map(fingerprint, dictionaries), strict=True))


def check_replaceable(folder: Path) -> None:
    """Refuse a folder that a new model folder must not take the place of.

    Raises:
        UserError: it is a file, or holds what no model folder has.
    """
    if not folder.exists():
        return
    if not folder.is_dir():
        raise UserError(f"{folder} is a file, a folder is needed: name another --out")
    entries = sorted(folder.iterdir())
    try:
        if entries:
            own_config(folder)
    except UserError as error:
        raise UserError(
            f"{folder} is there already and is no model folder: name another --out"
        ) from error
    for entry in entries:
        known = any(fnmatchcase(entry.name, pattern) for pattern in FILES)
        if not (known and entry.is_file()):
            raise UserError(
                f"{folder} is there already and holds {entry.name}, which hyptrans export did not "
                "write: name another --out"
            )


@contextmanager
def _whole_folder(folder: Path) -> Iterator[Path]:
    """Fill another folder, which gets the name of this one only when it is complete."""
    folder = folder.resolve()
    folder.parent.mkdir(parents=True, exist_ok=True)
    # beside it, as names change places only within a file system
    with TemporaryDirectory(dir=folder.parent, prefix=f"{folder.name}.partial-") as scratch:
        new = Path(scratch) / "new"
        # the outer one is its owner's alone
        new.mkdir()
        yield new
        # something may have been put there meanwhile
        check_replaceable(folder)
        put_in_place(new, folder)


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
    _check_pointer(path, content)
    return content


def _check_pointer(path: Path, content: bytes) -> None:
    """Raise for what Git leaves of a large file where Git LFS is not installed."""
    if content.startswith(_POINTER):
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


def _parameters(path: Path) -> dict[str, Tensor]:
    if not path.is_file():
        raise UserError(f"{path} is missing: name a folder that hyptrans export wrote")
    with open(path, "rb") as file:
        _check_pointer(path, file.read(len(_POINTER)))
    try:
        return load_file(str(path))
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        reason = " ".join(unquoted(error).split())[:120]
        raise UserError(f"{path} is damaged or no safetensors file ({reason})") from error


def _write_parameters(contents: Contents, path: Path, dtype: torch.dtype) -> None:
    with one_sentence():
        parts = ARCHITECTURES[contents.architecture].parts
        parameters = parts.current_names(contents.parameters)
    kept: dict[str, Tensor] = {}
    places: set[tuple[int, torch.Size]] = set()
    for name, tensor in parameters.items():
        # what two parts of a model share is written once
        place = (tensor.data_ptr(), tensor.shape)
        if place in places and tensor.numel():
            continue
        places.add(place)
        kept[name] = _rounded(contents.place, name, tensor, dtype)
    with whole_file(path) as file:
        file.write(save(kept, metadata={"format": "pt"}))


def _rounded(place: str, name: str, tensor: Tensor, dtype: torch.dtype) -> Tensor:
    if not tensor.is_floating_point():
        return tensor.contiguous()
    if not bool(tensor.isfinite().all()):
        raise UserError(f"{place}: {name} has numbers that are not finite; take an earlier one")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = tensor.to(dtype).contiguous()
    if not bool(made.isfinite().all()):
        raise UserError(f"{place}: {name} is too large for half precision; export with full")
    return made
