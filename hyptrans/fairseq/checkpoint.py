"""Read a translation model from a fairseq checkpoint and the data folder of its training."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairseq.checkpoint_utils import load_checkpoint_to_cpu
from fairseq.data.data_utils import infer_language_pair
from torch import Tensor

from hyptrans.data import manifest
from hyptrans.inference import text
from hyptrans.inference.architecture import choose_options, require_known
from hyptrans.inference.contents import (
    AVERAGED,
    Contents,
    checked_languages,
    data_bin,
    dictionaries,
)
from hyptrans.inference.dictionary import fingerprint
from hyptrans.support.errors import UserError, one_line
from hyptrans.support.files import short_names

DICTIONARIES, COMMAND = "dictionaries", "command"
"""The keys in a checkpoint for the fingerprints of its dictionaries, by side, and for the command
of its training; versions before 0.3.0 have neither."""
SIDES = ("source", "target")
_LONGEST_REASON = 200


def read_state(path: Path) -> dict[str, Any]:
    """Read a checkpoint as fairseq stores it, without running any code in it.

    Raises:
        UserError: fairseq did not write the file.
    """
    try:
        state: dict[str, Any] = load_checkpoint_to_cpu(str(path))
        # the parts of a configuration that are used here
        missing = [key for key in ("model", "task") if key not in state["cfg"]]
        missing += [] if state["model"] else ["parameters"]
    except OSError:
        raise
    # torch and fairseq raise errors of many classes for a file that is damaged or not a checkpoint
    except Exception as error:
        raise UserError(
            f"checkpoint {path} is cut short or was not written by fairseq "
            f"({one_line(str(error) or type(error).__name__, _LONGEST_REASON)})"
        ) from error
    if missing:
        raise UserError(f"checkpoint {path} was not written by fairseq: no {missing[0]} in it")
    return state


def updates_of(state: Mapping[str, Any]) -> int | None:
    """Return the number of updates before a checkpoint, None if it does not say."""
    last = (state.get("optimizer_history") or [None])[-1]
    updates = last.get("num_updates") if isinstance(last, Mapping) else None
    return updates if _is_count(updates) else None


def _is_count(found: Any) -> bool:
    return type(found) is int and 0 <= found < 1 << 63


def architecture_of(path: Path, state: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the architecture and options of a checkpoint.

    Raises:
        UserError: this package cannot build it.
    """
    model = state["cfg"].model
    # the configuration is made of flags or of a dataclass
    given = dict(model.items() if hasattr(model, "items") else vars(model))
    hint = "; fairseq-generate translates with fairseq's own architectures"
    try:
        # flags have both names, and --arch is the more precise one
        architecture = require_known(given.get("arch") or given.get("_name"))
        hint = ""
        return architecture, choose_options(architecture, given)
    except UserError as error:
        raise UserError(f"checkpoint {path} cannot be used: {error}{hint}") from error


def parameters_of(path: Path, state: Mapping[str, Any]) -> dict[str, Tensor]:
    """Return the parameters, by name, of a checkpoint that :func:`read_state` returned.

    Raises:
        UserError: the checkpoint holds something else in their place.
    """
    found = state["model"]
    if not all(isinstance(name, str) and isinstance(one, Tensor) for name, one in found.items()):
        raise UserError(
            f"checkpoint {path} was not written by fairseq: its model holds no parameters"
        )
    return dict(found)


def read(
    path: Path,
    data: Path | None = None,
    *,
    subword_models: Mapping[str, str | os.PathLike[str] | None] | None = None,
    moses: bool = False,
) -> Contents:
    """Read a checkpoint with its dictionaries and its description of the text.

    Args:
        path: file that ``fairseq-train`` wrote.
        data: folder of its dictionaries, ``data-bin`` or its parent; by default the one that the
            checkpoint was trained on, a relative one starting from a folder around the checkpoint.
        subword_models: files of subword models by kind, if the folder does not name them.
        moses: whether to tokenize the text as Moses does.

    Raises:
        UserError: something is missing or does not fit.
    """
    state = read_state(path)
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
    found = (getattr(task, "source_lang", None), getattr(task, "target_lang", None))
    try:
        languages = checked_languages(infer_language_pair(str(binary)) if None in found else found)
    except UserError as error:
        raise UserError(
            f"checkpoint {path} with --data {folder} cannot be used: {error}"
        ) from error
    pair = dictionaries(binary, languages)
    check_dictionaries(path, state, dict(zip(SIDES, pair, strict=True)))
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


def check_dictionaries(
    path: object, state: Mapping[str, Any], dictionaries: Mapping[str, Any]
) -> None:
    """Compare the dictionaries of a checkpoint's training with others; warn if it records none.

    Raises:
        UserError: one differs.
    """
    stored = state.get(DICTIONARIES)
    if not isinstance(stored, Mapping):
        sys.stderr.write(
            f"checkpoint {one_line(str(path))} does not say which dictionaries it was trained "
            "with: only their sizes are compared with the data's\n"
        )
        return
    for side, dictionary in dictionaries.items():
        if stored.get(side) not in (None, fingerprint(dictionary)):
            raise UserError(
                f"checkpoint {path} was trained with another {side} dictionary: name the data "
                "folder of its training"
            )


def _facts(path: Path, state: Mapping[str, Any], prepared: Path) -> dict[str, Any]:
    """Return what the model card says about the training."""
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
    inputs, command = found["inputs"] if found else {}, state.get(COMMAND)
    return {
        "command": command if isinstance(command, str) else None,
        "updates": updates_of(state),
        AVERAGED: averaged,
        "data": {short: inputs[name]["sha256"] for name, short in short_names(inputs).items()},
    }
