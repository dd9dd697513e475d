"""Read a translation model from a fairseq checkpoint and the data folder of its training."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, TypeGuard

from fairseq.checkpoint_utils import load_checkpoint_to_cpu
from fairseq.data.data_utils import infer_language_pair
from torch import Tensor

from hyptrans.data import manifest
from hyptrans.inference import text
from hyptrans.inference.architecture import choose_options, require_known
from hyptrans.inference.contents import AVERAGED, Contents, checked_languages, dictionary_file
from hyptrans.inference.dictionary import Dictionary, fingerprint
from hyptrans.support.errors import UserError, one_line
from hyptrans.support.files import check_is_checkpoint, short_names

LAST = "checkpoint_last.pt"
"""The checkpoint that fairseq-train resumes from."""
DICTIONARIES = "dictionaries"
"""The key in a checkpoint for the fingerprints of its dictionaries, by side."""
SIDES = ("source", "target")
NOT_SAID = (
    "checkpoint {} does not say which dictionaries it was trained with: their sizes alone are held "
    "against those of the data"
)
_UNREADABLE = (
    *(OSError, EOFError, RuntimeError, UnpicklingError),
    *(LookupError, ValueError, TypeError, AttributeError),
)
"""Exceptions of torch and fairseq for a file that is damaged or no checkpoint."""
_LONGEST_REASON = 200
# the parts of a configuration that are used here
_GROUPS = ("model", "task", "checkpoint")


def read_state(path: Path) -> dict[str, Any]:
    """Read a checkpoint as fairseq stores it, without running any code in it.

    Raises:
        UserError: there is no such file, or fairseq did not write it.
    """
    check_is_checkpoint(path)
    try:
        state = load_checkpoint_to_cpu(str(path))
    except _UNREADABLE as error:
        raise UserError(
            f"checkpoint {path} is cut short or was not written by fairseq "
            f"({one_line(str(error) or type(error).__name__, _LONGEST_REASON)})"
        ) from error
    missing = [key for key in ("cfg", "model") if not state.get(key)]
    missing = missing or [f"cfg.{group}" for group in _GROUPS if group not in state["cfg"]]
    if missing:
        raise UserError(f"checkpoint {path} was not written by fairseq: no {missing[0]} in it")
    return state


def updates_of(state: Mapping[str, Any]) -> int | None:
    """Return the number of updates before a checkpoint, None if it does not say."""
    last = (state.get("optimizer_history") or [None])[-1]
    updates = last.get("num_updates") if isinstance(last, Mapping) else None
    return updates if _is_count(updates) else None


def _is_count(found: Any) -> TypeGuard[int]:
    """Return whether the value is a count."""
    return type(found) is int and 0 <= found < 1 << 63


def architecture_of(path: Path, state: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the architecture and options of a checkpoint.

    Raises:
        UserError: this package cannot build it.
    """
    given = _values(state["cfg"].model)
    # a configuration made of flags has both, and --arch is the more precise one
    try:
        architecture = require_known(given.get("arch") or given.get("_name"))
    except UserError as error:
        elsewhere = "; fairseq-generate translates with fairseq's own architectures"
        raise UserError(f"checkpoint {path} cannot be used: {error}{elsewhere}") from error
    try:
        return architecture, choose_options(architecture, given)
    except UserError as error:
        raise UserError(f"checkpoint {path} cannot be used: {error}") from error


def parameters_of(path: Path, state: Mapping[str, Any]) -> dict[str, Tensor]:
    """Return the parameters, by name, of a checkpoint that :func:`read_state` returned.

    Raises:
        UserError: the checkpoint holds something else in their place.
    """
    found = state["model"]
    if not all(isinstance(name, str) and isinstance(one, Tensor) for name, one in found.items()):
        raise UserError(f"checkpoint {path} was not written by fairseq: its model is no parameters")
    return dict(found)


def _values(options: Any) -> dict[str, Any]:
    """Return a configuration's values, whether it is made of flags or of a dataclass."""
    return dict(options.items()) if hasattr(options, "items") else dict(vars(options))


def read(
    path: Path,
    data: Path | None = None,
    *,
    subword_models: Mapping[str, str | os.PathLike[str] | None] | None = None,
    moses: bool = False,
    state: Mapping[str, Any] | None = None,
) -> Contents:
    """Read a checkpoint with its dictionaries and its description of the text.

    Args:
        path: file that ``fairseq-train`` wrote.
        data: folder of its dictionaries, ``data-bin`` or its parent; by default the one that the
            checkpoint was trained on, a relative one starting from a folder around the checkpoint.
        subword_models: files of subword models by kind, if the folder does not name them.
        moses: whether to tokenize the text as Moses does.
        state: the file's content, if :func:`read_state` has already read it.

    Raises:
        UserError: something is missing or does not fit.
    """
    state = read_state(path) if state is None else state
    architecture, options = architecture_of(path, state)
    task = state["cfg"].task
    stored = str(getattr(task, "data", None) or "").split(":")[0]
    if data is None and not stored:
        raise UserError(f"checkpoint {path} does not name its data folder: name it with --data")
    folder = data or _as_in_training(Path(stored), path)
    if not folder.is_dir():
        raise UserError(
            f"checkpoint {path}: its data folder {folder} is not there; name it with --data"
        )
    if data is None:
        sys.stderr.write(f"data folder of the checkpoint: {one_line(str(folder))}\n")
    binary = data_bin(folder)
    languages = language_pair(task, binary)
    pair = dictionaries(binary, languages)
    if not compare_dictionaries(str(path), state, dict(zip(SIDES, pair, strict=True))):
        sys.stderr.write(f"{NOT_SAID.format(one_line(str(path)))}\n")
    prepared = binary.parent if (binary.parent / manifest.NAME).is_file() else binary
    return Contents(
        place=f"checkpoint {path}",
        architecture=architecture,
        options=options,
        languages=languages,
        dictionaries=pair,
        parameters=parameters_of(path, state),
        text=text.from_data(prepared, languages, subword_models or {}, moses=moses),
        facts=_facts(path, state, prepared),
    )


def _as_in_training(stored: Path, checkpoint: Path) -> Path:
    """Find the data folder of a training whose working directory is unknown.

    A relative path is tried from the folders around the checkpoint, the nearest first, and only
    then from the current one, which may have other data of the same name.
    """
    around = (parent / stored for parent in checkpoint.resolve().parents)
    return next((folder for folder in around if folder.is_dir()), stored)


def data_bin(data: Path) -> Path:
    """Return the ``data-bin`` in a folder of prepared data, or the folder itself if it has none."""
    folder = data / "data-bin"
    return folder if folder.is_dir() else data


def language_pair(task: Any, binary: Path) -> tuple[str, str]:
    """Return the source and target language of a checkpoint's task, else those of its data.

    Raises:
        UserError: neither names both languages, or the names are no languages.
    """
    pair = (getattr(task, "source_lang", None), getattr(task, "target_lang", None))
    if None in pair:
        pair = infer_language_pair(str(binary)) if binary.is_dir() else (None, None)
    if None in pair:
        raise UserError(
            f"--data {binary} holds no pair of languages: name a folder of binarized data"
        )
    try:
        return checked_languages(pair)
    except UserError as error:
        raise UserError(f"the checkpoint for --data {binary} cannot be used: {error}") from error


def dictionaries(binary: Path, languages: tuple[str, str]) -> tuple[Dictionary, Dictionary]:
    """Load the dictionaries of source and target.

    Raises:
        UserError: one is missing.
    """
    loaded = []
    for language in languages:
        file = dictionary_file(binary, language)
        if not file.is_file():
            raise UserError(
                f"{file} is not there: name the data folder of the checkpoint with --data"
            )
        loaded.append(Dictionary.load(file))
    return loaded[0], loaded[1]


def compare_dictionaries(
    path: str, state: Mapping[str, Any], dictionaries: Mapping[str, Any]
) -> bool:
    """Compare the dictionaries of a checkpoint's training with others, by side.

    Returns:
        Whether the checkpoint records its dictionaries; versions before 0.3.0 did not.

    Raises:
        UserError: one differs.
    """
    stored = state.get(DICTIONARIES)
    if not isinstance(stored, Mapping):
        return False
    for side, dictionary in dictionaries.items():
        if stored.get(side) not in (None, fingerprint(dictionary)):
            raise UserError(
                f"checkpoint {path} was trained with another {side} dictionary: name the data "
                "folder of its training"
            )
    return True


def _facts(path: Path, state: Mapping[str, Any], prepared: Path) -> dict[str, Any]:
    """Return what the model card says about the training.

    Raises:
        UserError: the checkpoint claims to be an average but is none.
    """
    averaged = (state.get("extra_state") or {}).get(AVERAGED)
    if averaged is not None and not (isinstance(averaged, list) and all(map(_is_count, averaged))):
        raise UserError(
            f"checkpoint {path} cannot be used: its {AVERAGED} is not what hyptrans average writes"
        )
    try:
        found = manifest.load(prepared)
    except UserError:
        # another program's manifest; where subwords depend on it, it was refused earlier
        found = None
    inputs = found["inputs"] if found else {}
    return {
        "updates": updates_of(state),
        AVERAGED: averaged,
        "data": {short: inputs[name]["sha256"] for name, short in short_names(inputs).items()},
    }
