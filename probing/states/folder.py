"""The JSON of a folder in Hugging Face's format, looked at before its libraries read it."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hyptrans.support.errors import UserError
from hyptrans.support.stored import read_json

_MOST_TIMES = 1_000
"""That a text may grow while it is normalized; those of known tokenizers grow 20 times at most."""
_IMPLEMENTATION = "_implementation"
"""In the names of settings that can name code; other names than these may be fetched."""
_IN_THE_LIBRARY = (None, False, True, "eager", "sdpa")
_ELSEWHERE = ("fast_tokenizer_files", "tokenizer_file")
"""Settings that put other files in place of those looked at here."""
_PARAMETERS = ".safetensors"
_INDEX = ".safetensors.index.json"


def check(folder: Path) -> None:
    """Refuse what names code, models or files elsewhere, and tokenizers that make texts grow.

    Raises:
        UserError: the folder has one; says which.
    """
    try:
        for path in folder.iterdir():
            if not (path.is_file() or path.is_dir()):
                raise ValueError(f"{path.name!r} is no file")
        for name in ("config.json", "tokenizer_config.json"):
            for key, value in _settings(_read(folder / name)):
                _check_setting(name, key, value)
        _check_parameters(folder)
        if not (folder / "tokenizer.json").is_file() and any(folder.glob("*.model")):
            # the library would make one of it, with rules that nobody has looked at
            raise ValueError("its sentencepiece model has no tokenizer.json: save that beside it")
        found = _read(folder / "tokenizer.json")
        _check_growth([found.get("normalizer"), found.get("pre_tokenizer")])
    except (ValueError, RecursionError) as error:
        raise UserError(f"--hf {folder} is refused: {error}") from error


def _read(path: Path) -> dict[str, Any]:
    """The object of a file, nothing where there is none: the library tells what it misses."""
    if not path.is_file():
        return {}
    try:
        return read_json(path.read_text(encoding="utf-8"), unique=True)
    except ValueError as error:
        raise ValueError(f"{path.name} cannot be read ({error})") from error


def _settings(found: Any) -> Iterator[tuple[str, Any]]:
    """All settings by name, also those in others."""
    parts = found.values() if isinstance(found, dict) else found if isinstance(found, list) else ()
    if isinstance(found, dict):
        yield from found.items()
    for part in parts:
        yield from _settings(part)


def _check_setting(name: str, key: str, value: Any) -> None:
    found = ""
    if _IMPLEMENTATION in key:
        # one for all parts, or one for each by name
        named = list(value.values()) if isinstance(value, dict) else [value]
        found = "" if all(one in _IN_THE_LIBRARY for one in named) else "code to be fetched"
    elif "backbone" in key and value:
        found = "another model to be fetched"
    elif key == "attribute_map":
        found = "settings anew"
    elif key in _ELSEWHERE and value:
        found = "another tokenizer"
    elif key == "transformers_weights" and value:
        _check_plain(name, value, (_PARAMETERS, _INDEX))
    if found:
        raise ValueError(f"{name} names {found}, {str(value)[:40]!r}; take {key[:40]!r} out of it")


def _check_parameters(folder: Path) -> None:
    """All of them are in files of the folder itself."""
    if (folder / "adapter_config.json").exists():
        raise ValueError("adapter_config.json names another model; save one with it merged")
    for index in sorted(folder.glob(f"*{_INDEX}")):
        places = _read(index).get("weight_map")
        if not isinstance(places, dict):
            raise ValueError(f"{index.name} has no weight_map")
        for place in places.values():
            _check_plain(index.name, place, (_PARAMETERS,))


def _check_plain(name: str, place: Any, ends: tuple[str, ...]) -> None:
    plain = isinstance(place, str) and Path(place).name == place and place.endswith(ends)
    if not plain:
        raise ValueError(f"{name} names {str(place)[:40]!r}, no safetensors file of the folder")


def _check_growth(steps: Any) -> None:
    times, tables = 1.0, 0
    for key, value in _settings(steps):
        if key == "content" and isinstance(value, str):
            # put in place of each match, one of nothing at every letter too
            times *= len(value) + 1
        elif key == "prepend" and isinstance(value, str) and len(value) > _MOST_TIMES:
            times = math.inf
        elif key == "precompiled_charsmap" and isinstance(value, str):
            tables += 1
    if times > _MOST_TIMES or tables > 1:
        raise ValueError("its tokenizer makes a text many times as long")
