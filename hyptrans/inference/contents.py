"""All that a translation model is made of, whatever it was read from."""

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
"""What an average calls the updates after which its checkpoints were written."""
# of a language, in any code for it, zh.char too: without a slash it is no path
_LANGUAGE = re.compile(r"[A-Za-z0-9_.-]{1,32}")
# characters of what was found, in messages
_MOST_SHOWN = 80


@dataclass(frozen=True)
class Contents:
    """A translation model before it is built.

    Attributes:
        place: what messages call it: a file or a folder.
        architecture: name, as of ``--arch``.
        options: of the architecture, where they differ from its defaults or were stored.
        languages: source and target.
        dictionaries: of source and target.
        parameters: by name.
        text: how text becomes subwords.
        facts: what is known of its making, for JSON: updates, command, data, scores.
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
    """Raise UserError for models that are no ensemble: their text becomes other tokens."""
    first, *others = models
    for one in others:
        for part in ("languages", "dictionaries"):
            if getattr(one, part) != getattr(first, part):
                raise UserError(
                    f"{first.place} and {one.place} are no ensemble: their {part} differ"
                )
        if one.text.identity() != first.text.identity():
            raise UserError(f"{first.place} and {one.place} are no ensemble: their subwords differ")


def checked_languages(found: Any) -> tuple[str, str]:
    """Source and target language, as they may become parts of the names of files.

    Raises:
        UserError: they may not, to be put after the place that they were found in.
    """
    if isinstance(found, list | tuple) and len(found) == 2:
        source, target = found
        if all(isinstance(name, str) and _LANGUAGE.fullmatch(name) for name in found):
            return source, target
    raise UserError(
        "its languages are not two names of letters, digits, points and lines but "
        f"{str(found)[:_MOST_SHOWN]}: prepare its data with such names"
    )


def dictionary_file(binary: Path, language: str) -> Path:
    """Where the dictionary of a language is."""
    return binary / f"dict.{language}.txt"
