"""All that a translation model is made of, whatever it was read from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fairseq.data import Dictionary
from torch import Tensor

from hyptrans.inference.architecture import Option
from hyptrans.inference.text import TextRules


@dataclass(frozen=True)
class Contents:
    """A translation model before it is built.

    Attributes:
        place: what messages call it: a file or a folder.
        architecture: name, as of ``--arch``.
        options: of the architecture, where they differ from its defaults or were stored.
        languages: source and target.
        dictionaries: fairseq's, of source and target.
        parameters: by name.
        text: how text becomes subwords.
        facts: what is known of its making, for JSON: updates, command, data, scores.
    """

    place: str
    architecture: str
    options: Mapping[str, Option]
    languages: tuple[str, str]
    dictionaries: tuple[Dictionary, Dictionary]
    parameters: Mapping[str, Tensor]
    text: TextRules
    facts: Mapping[str, Any] = field(default_factory=dict)
