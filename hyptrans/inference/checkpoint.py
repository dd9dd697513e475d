"""Read a translation model from a checkpoint of fairseq and the data folder of its training."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairseq.checkpoint_utils import load_checkpoint_to_cpu
from fairseq.data import Dictionary
from fairseq.data.data_utils import infer_language_pair
from torch import Tensor

from hyptrans.dataprep import manifest
from hyptrans.inference import text
from hyptrans.inference.architecture import choose_options, require_known
from hyptrans.inference.contents import Contents
from hyptrans.support.errors import UserError

AVERAGED = "averaged_updates"
"""What an average calls the updates after which its checkpoints were written."""


def read_state(path: Path) -> dict[str, Any]:
    """A checkpoint as fairseq keeps it, read by torch's safe loader.

    Raises:
        UserError: no file, or none that fairseq wrote.
    """
    if not path.is_file():
        raise UserError(f"checkpoint {path} is not a file: name one that fairseq-train wrote")
    try:
        state = load_checkpoint_to_cpu(str(path))
    except (OSError, AttributeError) as error:
        raise UserError(f"checkpoint {path} was not written by fairseq ({error})") from error
    missing = [key for key in ("cfg", "model") if not state.get(key)]
    if missing:
        raise UserError(f"checkpoint {path} was not written by fairseq: no {missing[0]} in it")
    return state


def updates_of(state: Mapping[str, Any]) -> int | None:
    """Updates after which a checkpoint was written, None where it does not say."""
    updates = (state.get("optimizer_history") or [{}])[-1].get("num_updates")
    return None if updates is None else int(updates)


def architecture_of(path: Path, state: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Architecture and options of a checkpoint.

    Raises:
        UserError: this package cannot build it.
    """
    given = _values(state["cfg"].model)
    # a configuration of flags says both, and --arch is the more precise one
    try:
        architecture = require_known(given.get("arch") or given.get("_name"))
        return architecture, choose_options(architecture, given)
    except UserError as error:
        raise UserError(f"checkpoint {path} cannot be used: {error}") from error


def _values(options: Any) -> dict[str, Any]:
    """Of a configuration, whether of flags or of a dataclass."""
    return dict(options.items()) if hasattr(options, "items") else dict(vars(options))


def read(
    path: Path,
    data: Path | None = None,
    *,
    subword_models: Mapping[str, Path | None] | None = None,
    moses: bool = False,
) -> Contents:
    """Read a checkpoint and what belongs to it.

    Args:
        path: file that ``fairseq-train`` wrote.
        data: folder of its dictionaries, ``data-bin`` or one that holds it; by default the one that
            the checkpoint was trained on.
        subword_models: files of subword models by kind, where the folder does not say it.
        moses: the text is to be tokenized as Moses does.

    Raises:
        UserError: something is missing or does not fit.
    """
    state = read_state(path)
    architecture, options = architecture_of(path, state)
    task = state["cfg"].task
    folder = data or Path(str(getattr(task, "data", None) or "").split(":")[0])
    if not str(folder) or not folder.is_dir():
        raise UserError(
            f"checkpoint {path}: its data folder {folder} is not there; name it with --data"
        )
    binary = data_bin(folder)
    languages = language_pair(task, binary)
    prepared = binary.parent if (binary.parent / manifest.NAME).is_file() else binary
    return Contents(
        place=f"checkpoint {path}",
        architecture=architecture,
        options=options,
        languages=languages,
        dictionaries=dictionaries(binary, languages),
        parameters=_parameters(path, state),
        text=text.from_data(prepared, languages, subword_models or {}, moses=moses),
        facts=_facts(state, prepared),
    )


def data_bin(data: Path) -> Path:
    """The binarized data of a folder that ``data-prep/`` wrote, or the folder itself."""
    folder = data / "data-bin"
    return folder if folder.is_dir() else data


def language_pair(task: Any, binary: Path) -> tuple[str, str]:
    """Source and target language of a checkpoint's task, or of its data where it does not say.

    Raises:
        UserError: the data do not tell them either.
    """
    pair = (getattr(task, "source_lang", None), getattr(task, "target_lang", None))
    if None in pair:
        try:
            pair = infer_language_pair(str(binary))
        except UserError as error:
            raise UserError(f"--data: {error}") from error
    return str(pair[0]), str(pair[1])


def dictionaries(binary: Path, languages: tuple[str, str]) -> tuple[Dictionary, Dictionary]:
    """The dictionaries of source and target.

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
        loaded.append(Dictionary.load(str(file)))
    return loaded[0], loaded[1]


def dictionary_file(binary: Path, language: str) -> Path:
    """Where the dictionary of a language is."""
    return binary / f"dict.{language}.txt"


def _parameters(path: Path, state: Mapping[str, Any]) -> dict[str, Tensor]:
    found = state["model"]
    if not all(isinstance(tensor, Tensor) for tensor in found.values()):
        raise UserError(f"checkpoint {path} was not written by fairseq: its model is no parameters")
    return dict(found)


def _facts(state: Mapping[str, Any], prepared: Path) -> dict[str, Any]:
    """What the model card tells of the training."""
    found = manifest.load(prepared)
    inputs = found["inputs"] if found else {}
    return {
        "updates": updates_of(state),
        AVERAGED: (state.get("extra_state") or {}).get(AVERAGED),
        "data": {Path(name).name: one["sha256"] for name, one in inputs.items()},
    }
