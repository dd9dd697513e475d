"""Model folders: parameters (without pickle), options, dictionaries, subword model and card.

Only functions that read or write parameters or check options import torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from hyptrans import __version__
from hyptrans.data import subwords
from hyptrans.inference import text
from hyptrans.inference.contents import (
    AVERAGED,
    Contents,
    checked_languages,
    dictionaries,
    dictionary_file,
)
from hyptrans.inference.dictionary import Dictionary, fingerprint
from hyptrans.support import provenance
from hyptrans.support.errors import UserError, unquoted
from hyptrans.support.files import (
    put_in_place,
    read_bytes,
    read_json,
    whole_file,
    write_json,
    write_whole,
)

if TYPE_CHECKING:
    import torch
    from torch import Tensor

CONFIG, WEIGHTS, CARD = "config.json", "model.safetensors", "README.md"
FORMAT = 1
"""Format of ``config.json``; it increases when older versions of this package cannot read it."""
MODEL_TYPE = "hyptrans"
"""Name by which the library transformers recognizes a model folder."""
PRECISIONS = {"half": "float16", "full": "float32"}
"""torch's types in which the parameters may be stored."""
DICTIONARIES = "dictionaries"
"""Key of both dictionaries' fingerprints in a configuration; 0.2.0 wrote none."""
GRAPHS = ("encoder.onnx", "decoder.onnx")
FILES = [CONFIG, WEIGHTS, CARD, "dict.*.txt", *GRAPHS, *subwords.MODEL_NAMES.values()]
"""Patterns of a model folder's file names."""
_FACTS: Mapping[str, Any] = {
    **dict.fromkeys(("license", "dataset", "test", "command"), str),
    **{"updates": int, "beam": int, "data": dict, AVERAGED: [int]},
    "scores": [{"name": str, "signature": str, "value": float}],
}
"""Names of the training's facts, with their types, also those of a list's items and of fields."""
_MOST_BYTES = 64 << 20
"""Most bytes of a configuration; real ones have a thousandth of that."""


def read(folder: Path, *, with_parameters: bool = True) -> Contents:
    """Read a folder that :func:`write` wrote, with or without parameters, running nothing in it.

    Raises:
        UserError: a file is missing, damaged, or of another version.
    """
    from hyptrans.inference.architecture import check_options, require_known

    found = read_rules(folder)
    try:
        options = check_options(require_known(found.architecture), found.options)
    except UserError as error:
        raise UserError(f"{folder / CONFIG} cannot be used: {error}") from error
    parameters = _parameters(folder / WEIGHTS) if with_parameters else {}
    return replace(found, options=options, parameters=parameters)


def read_rules(folder: Path) -> Contents:
    """Read a model folder without its parameters, and without torch, which checks the options.

    Raises:
        UserError: a file is missing, damaged, or of another version.
    """
    path, config = folder / CONFIG, own_config(folder)
    if config.get("format") != FORMAT:
        version, number = (str(config.get(key))[:40] for key in ("hyptrans_version", "format"))
        raise UserError(
            f"{folder} was written by hyptrans {version} in format {number}, this "
            f"version, {__version__}, reads format {FORMAT}: install that one, or export it again"
        )
    options, facts = config.get("options"), config.get("facts")
    try:
        languages = checked_languages(config.get("languages"))
        if not isinstance(options, dict):
            raise UserError("its options are missing")
        facts = facts if isinstance(facts, dict) else {}
        facts = {name: facts[name] for name in _FACTS if facts.get(name) is not None}
        for name, value in facts.items():
            if not _is_like(value, _FACTS[name]):
                raise UserError(f"its {name} is not what hyptrans export writes")
    except UserError as error:
        raise UserError(f"{path} cannot be used: {error}") from error
    source, target = dictionaries(folder, languages)
    prints = fingerprints((source, target))
    if config.get(DICTIONARIES, prints) != prints:
        raise UserError(
            f"{folder}: a dictionary is not the one that the model was exported with: export the "
            "model again"
        )
    return Contents(
        place=str(folder),
        architecture=str(config.get("architecture")),
        options=options,
        languages=languages,
        dictionaries=(source, target),
        parameters={},
        text=text.from_json(config.get("text"), folder, languages),
        facts=facts,
    )


def own_config(folder: Path) -> dict[str, Any]:
    """Return the configuration of a model folder of any format.

    Raises:
        UserError: the folder has no configuration, or one that is not of a model folder.
    """
    path = folder / CONFIG
    try:
        config = read_json(read_bytes(path, _MOST_BYTES).decode("utf-8-sig"))
        if config.get("library_name") != "hyptrans":
            raise ValueError("hyptrans did not write it")
    except ValueError as error:
        # what hyptrans train calls it, in the folder of a run
        inside = folder / "model"
        instead = inside if (inside / CONFIG).is_file() else "one that hyptrans export wrote"
        raise UserError(
            f"{path} does not belong to a model folder ({error}): name {instead}"
        ) from error
    return config


def fingerprints(dictionaries: Sequence[Dictionary]) -> dict[str, str]:
    """Return the fingerprints of both dictionaries, as a configuration has them."""
    return dict(zip(("source", "target"), map(fingerprint, dictionaries), strict=True))


def _is_like(value: Any, kind: Any) -> bool:
    """Return whether a value of JSON has a type of ``_FACTS``."""
    if isinstance(kind, list):
        return isinstance(value, list) and all(_is_like(one, kind[0]) for one in value)
    if isinstance(kind, dict):
        return isinstance(value, dict) and all(_is_like(value.get(k), kind[k]) for k in kind)
    return isinstance(value, kind)


def _parameters(path: Path) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(str(path))
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        reason = " ".join(unquoted(error).split())[:120]
        raise UserError(
            f"{path} is missing, damaged or not a safetensors file ({reason})"
        ) from error


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
        UserError: the folder holds something else, or numbers are too large for half precision.
    """
    check_replaceable(folder)
    with _whole_folder(folder) as new:
        _write_parameters(contents, new / WEIGHTS, precision)
        write_text(contents.languages, contents.dictionaries, contents.text, new)
        write_whole(new / CARD, card)
        about = {} if graphs is None else {"onnx": dict(graphs(new))}
        write_json(new / CONFIG, {**as_json(contents, precision), **about})


def write_text(
    languages: Sequence[str], dictionaries: Sequence[Dictionary], rules: text.TextRules, place: Path
) -> list[Path]:
    """Write both dictionaries in fairseq's format and the subword model; return their paths."""
    written = [dictionary_file(place, language) for language in languages]
    for path, dictionary in zip(written, dictionaries, strict=True):
        rows = zip(dictionary.symbols, dictionary.count, strict=True)
        lines = [f"{symbol} {count}\n" for symbol, count in rows][dictionary.nspecial :]
        write_whole(path, "".join(lines))
    if rules.model is not None:
        content = rules.model.read_bytes()
        written.append(place / subwords.MODEL_NAMES[rules.kind])
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
    """Raise UserError for a file, and for a folder with files that no model folder has."""
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
            f"{folder} already exists and is not a model folder: name another --out"
        ) from error
    for entry in entries:
        if not (entry.is_file() and any(fnmatchcase(entry.name, pattern) for pattern in FILES)):
            raise UserError(
                f"{folder} already exists and holds {entry.name}, which hyptrans export did not "
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


def _write_parameters(contents: Contents, path: Path, precision: str) -> None:
    import torch
    from safetensors.torch import save

    from hyptrans.inference.architecture import one_sentence
    from hyptrans.seq2seq.architectures import ARCHITECTURES

    with one_sentence():
        parts = ARCHITECTURES[contents.architecture].parts
        parameters = parts.current_names(contents.parameters)
    kept: dict[tuple[int, torch.Size], tuple[str, Tensor]] = {}
    for name, tensor in parameters.items():
        # write once what two parts of a model share; an empty tensor has no memory to share
        kept.setdefault((tensor.data_ptr() or id(tensor), tensor.shape), (name, tensor))
    dtype: torch.dtype = getattr(torch, PRECISIONS[precision])
    rounded = {name: _rounded(contents.place, name, one, dtype) for name, one in kept.values()}
    with whole_file(path) as file:
        file.write(save(rounded, metadata={"format": "pt"}))


def _rounded(place: str, name: str, tensor: Tensor, dtype: torch.dtype) -> Tensor:
    if not tensor.is_floating_point():
        return tensor.contiguous()
    if not bool(tensor.isfinite().all()):
        raise UserError(f"{place}: {name} has numbers that are not finite; take an earlier one")
    made = tensor.to(dtype).contiguous()
    if not bool(made.isfinite().all()):
        raise UserError(f"{place}: {name} is too large for half precision; export with full")
    return made
