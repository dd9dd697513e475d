"""Model folders: parameters (without pickle), options, dictionaries, subword model and card."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from hyptrans import __version__
from hyptrans.inference.architecture import check_options, one_sentence, require_known
from hyptrans.inference.contents import Contents, checked_languages, dictionary_file
from hyptrans.inference.dictionary import Dictionary
from hyptrans.inference.sharing import config
from hyptrans.inference.sharing.config import (
    CARD,
    CONFIG,
    DICTIONARIES,
    FILES,
    FORMAT,
    MODEL_TYPE,
    POINTER,
    WEIGHTS,
    check_pointer,
    fingerprints,
    own_config,
)
from hyptrans.inference.text import TextRules
from hyptrans.seq2seq.architectures import ARCHITECTURES
from hyptrans.support import provenance
from hyptrans.support.errors import UserError, unquoted
from hyptrans.support.files import put_in_place, whole_file, write_json, write_whole

PRECISIONS: Mapping[str, torch.dtype] = {"half": torch.float16, "full": torch.float32}


def read(folder: Path, *, with_parameters: bool = True) -> Contents:
    """Read a folder that :func:`write` wrote, running nothing in it.

    Args:
        folder: the model folder.
        with_parameters: whether to read the parameters; else the contents have none.

    Raises:
        UserError: a file is missing, damaged, or of another version.
    """
    described = config.read(folder)
    try:
        architecture = require_known(described.architecture)
        options = check_options(architecture, dict(described.options))
    except UserError as error:
        raise UserError(f"{folder / CONFIG} cannot be used: {error}") from error
    return replace(
        described,
        architecture=architecture,
        options=options,
        parameters=_parameters(folder / WEIGHTS) if with_parameters else {},
    )


def write(
    contents: Contents,
    folder: Path,
    *,
    card: str,
    precision: str = "half",
    graphs: Callable[[Path], Mapping[str, Any]] | None = None,
) -> None:
    """Write a folder, whole or not at all.

    Args:
        contents: what to write.
        folder: new, empty, or a model folder with nothing else in it, which is replaced.
        card: text of its ``README.md``.
        precision: precision of the parameters, one of ``PRECISIONS``.
        graphs: writes ONNX graphs into a folder and returns their entry in the configuration.

    Raises:
        UserError: the folder holds something else, or numbers are too large for half precision,
            or the languages are not valid names.
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
        about = {} if graphs is None else {"onnx": dict(graphs(new))}
        write_json(new / CONFIG, {**as_json(contents, precision), **about})


def write_text(
    languages: Sequence[str], dictionaries: Sequence[Dictionary], rules: TextRules, place: Path
) -> list[Path]:
    """Write both dictionaries in fairseq's format and the subword model; return their paths."""
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
    """Return the configuration of a folder, with the entries that transformers needs."""
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
        DICTIONARIES: fingerprints(contents.dictionaries),
        "text": contents.text.as_json(),
        "precision": precision,
        "facts": dict(contents.facts),
        "versions": provenance.versions("torch", "fairseq", "sentencepiece"),
    }


def check_replaceable(folder: Path) -> None:
    """Refuse a path that a new model folder must not replace.

    Raises:
        UserError: it is a file, or a folder with files that no model folder has.
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
    """Yield a temporary folder to fill, and rename it to ``folder`` once it is complete."""
    folder = folder.resolve()
    folder.parent.mkdir(parents=True, exist_ok=True)
    # in the same parent, since a rename works only within a file system
    with TemporaryDirectory(dir=folder.parent, prefix=f"{folder.name}.partial-") as scratch:
        new = Path(scratch) / "new"
        # a subfolder, since the temporary folder is readable by its owner only
        new.mkdir()
        yield new
        # files may have appeared there meanwhile
        check_replaceable(folder)
        put_in_place(new, folder)


def _parameters(path: Path) -> dict[str, Tensor]:
    if not path.is_file():
        raise UserError(f"{path} is missing: name a folder that hyptrans export wrote")
    with open(path, "rb") as file:
        check_pointer(path, file.read(len(POINTER)))
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
        # write once what two parts of a model share
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
