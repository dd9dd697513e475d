"""The contents of a translation model, whatever it was read from."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hyptrans.inference.dictionary import Dictionary
from hyptrans.inference.text import TextRules
from hyptrans.support.errors import UserError

if TYPE_CHECKING:
    from torch import Tensor

    from hyptrans.inference.architecture import Option

AVERAGED = "averaged_updates"
"""The fact that lists after how many updates an average's checkpoints were written."""
# the name of a language, in any code, zh.char too; without a slash it cannot be a path
_LANGUAGE = re.compile(r"[A-Za-z0-9_.-]{1,32}")


@dataclass(frozen=True)
class Contents:
    """A translation model before it is built.

    Attributes:
        place: the file or folder that messages name.
        architecture: its name, as in ``--arch``.
        options: the architecture's options that differ from its defaults or were stored.
        languages: source and target.
        dictionaries: those of source and target.
        parameters: by name.
        text: how text becomes subwords.
        facts: what is known of its training, for JSON: updates, command, data, scores.
    """

    place: str
    architecture: str
    options: "Mapping[str, Option]"
    languages: tuple[str, str]
    dictionaries: tuple[Dictionary, Dictionary]
    parameters: "Mapping[str, Tensor]"
    text: TextRules
    facts: Mapping[str, Any] = field(default_factory=dict)


def check_alike(models: Sequence[Contents]) -> None:
    """Raise UserError if models cannot be an ensemble: the same text becomes different tokens."""
    first, *others = models
    for one in others:
        alike = {
            "languages": one.languages == first.languages,
            "dictionaries": one.dictionaries == first.dictionaries,
            "subwords": one.text.identity() == first.text.identity(),
        }
        for part in [part for part, same in alike.items() if not same]:
            raise UserError(
                f"{first.place} and {one.place} cannot form an ensemble: their {part} differ"
            )


def checked_languages(found: Any) -> tuple[str, str]:
    """Return source and target language if they are safe in file names.

    Raises:
        UserError: they are not; the message is to follow the place where they were found.
    """
    if isinstance(found, list | tuple) and len(found) == 2:
        source, target = found
        if all(isinstance(name, str) and _LANGUAGE.fullmatch(name) for name in found):
            return source, target
    raise UserError(
        "its languages must be two names of letters, digits, '.', '_' and '-', got "
        f"{str(found)[:80]}: prepare its data with such names"
    )


def dictionary_file(binary: Path, language: str) -> Path:
    """Return the path of a language's dictionary."""
    return binary / f"dict.{language}.txt"


def data_bin(data: Path) -> Path:
    """Return the ``data-bin`` in a folder of prepared data, or the folder itself if it has none."""
    folder = data / "data-bin"
    return folder if folder.is_dir() else data


def dictionaries(binary: Path, languages: tuple[str, str]) -> tuple[Dictionary, Dictionary]:
    """Load the dictionaries of source and target.

    Raises:
        UserError: one is missing or damaged.
    """
    source, target = (Dictionary.load(dictionary_file(binary, one)) for one in languages)
    return source, target
