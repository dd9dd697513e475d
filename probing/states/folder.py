"""The JSON of a folder in Hugging Face's format, looked at before its libraries read it."""

import base64
import binascii
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hyptrans.dataprep.steps import rules
from hyptrans.support.errors import UserError
from hyptrans.support.stored import read_json

_MOST_TIMES = 1_000
"""That a text may grow while it is normalized; those of known tokenizers grow 20 times at most."""
_IMPLEMENTATION = "_implementation"
"""End of the names of settings that can name code: what has a slash is fetched."""


def check(folder: Path) -> None:
    """Refuse settings that name code to be fetched, and tokenizers that make texts grow.

    Raises:
        UserError: the folder has one; says which.
    """
    try:
        for name in ("config.json", "tokenizer_config.json"):
            for key, value in _settings(_read(folder / name)):
                if key.endswith(_IMPLEMENTATION) and "/" in str(value):
                    raise ValueError(f"{name} names code to be fetched, {str(value)[:40]!r}")
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
            rules.check(_decoded(value))
    if times > _MOST_TIMES or tables > 1:
        raise ValueError("its tokenizer makes a text many times as long")


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError("its table of characters is damaged") from error
