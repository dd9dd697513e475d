"""Turn raw text into the subwords that a model was trained on, and back."""

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from hyptrans.data import manifest, subwords
from hyptrans.data.corpus import scrubbed
from hyptrans.data.moses import TextSteps
from hyptrans.support.errors import UserError
from hyptrans.support.extras import require


@dataclass(frozen=True)
class TextRules:
    """The rules by which text becomes subwords; a model folder stores them.

    Attributes:
        kind: one of ``subwords.KINDS``.
        model: file of the subword model; None if there is none.
        raw_text: whether every Unicode space becomes a plain space.
        steps: earlier steps on the text, for the source and for the target language.
        one_model: whether both dictionaries come from this model, as in data preparation.
    """

    kind: str
    model: Path | None
    raw_text: bool
    steps: tuple[TextSteps, TextSteps]
    one_model: bool = True

    def identity(self) -> tuple[Any, ...]:
        """Return a value that is equal for rules that split every text into the same subwords."""
        model = None if self.model is None else self.model.read_bytes()
        return self.kind, self.raw_text, self.steps, model

    def encoder(self, side: int, known: Collection[str]) -> Callable[[str], list[str]]:
        """Return a function from a text to its subwords; spaces alone give none.

        Args:
            side: 0 for the source language, 1 for the target.
            known: subwords of the dictionary; sentencepiece's other subwords are spelled out, as
                in data preparation.

        Raises:
            UserError: the subword model is missing or is not of this kind.
        """
        return partial(_cut, self.raw_text, self.steps[side].build(), self._split(known))

    def decoder(self) -> Callable[[str], str]:
        """Return a function from the target language's subwords, joined by spaces, to text."""
        steps = self.steps[1]
        if not steps.tokenize:
            return partial(_joined, self.kind, str.strip)
        moses = require("sacremoses", "data").MosesDetokenizer(lang=steps.language)
        return partial(_joined, self.kind, partial(_detokenized, moses))

    def _split(self, known: Collection[str]) -> Callable[[str], str]:
        if self.model is None:
            return subwords.without_reserved
        with subwords.reading(self.kind, self.model):
            if self.kind == "sentencepiece":
                return subwords.sentencepiece_encoder(self.model, known, one_model=self.one_model)
            return subwords.Encoder(self.kind, self.model).build()

    def as_json(self) -> dict[str, Any]:
        """Return the rules for JSON; :func:`from_json` reads them."""
        steps = [[flag for flag in manifest.STEPS if getattr(one, flag)] for one in self.steps]
        return {"subwords": self.kind, "raw_text": self.raw_text, "steps": steps}


# module-level functions, so that a model can be pickled for another process


def _cut(
    raw_text: bool, prepare: Callable[[str], str], split: Callable[[str], str], text: str
) -> list[str]:
    text = scrubbed(text, raw_text=raw_text)
    # some models would make subwords of spaces alone
    return split(prepare(text)).split() if text.strip() else []


def _joined(kind: str, finish: Callable[[str], str], line: str) -> str:
    return finish(subwords.decode(kind, line))


def _detokenized(moses: Any, text: str) -> str:
    return str(moses.detokenize(text.split()))


def from_json(found: Any, folder: Path, languages: tuple[str, str]) -> TextRules:
    """Return the rules that a model folder stores.

    Raises:
        UserError: they are damaged.
    """
    try:
        kind, raw_text, steps = found["subwords"], found["raw_text"], found["steps"]
        source, target = (
            TextSteps(language, **dict.fromkeys(flags, True))
            for language, flags in zip(languages, steps, strict=True)
            if set(flags) <= set(manifest.STEPS)
        )
        if kind not in subwords.KINDS or not isinstance(raw_text, bool):
            raise ValueError(kind)
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"{folder}: its rules for text are damaged ({error})") from error
    name = subwords.MODEL_NAMES.get(kind)
    return TextRules(kind, folder / name if name else None, raw_text, (source, target))


def from_data(
    folder: Path,
    languages: tuple[str, str],
    named: Mapping[str, str | os.PathLike[str] | None],
    *,
    moses: bool,
) -> TextRules:
    """Return the rules by which a data folder was made.

    Args:
        folder: a folder from ``hyptrans prepare``, or any folder if ``named`` gives the rules.
        languages: source and target.
        named: file of the subword model by its kind, instead of the folder's record; the kind
            ``none`` has no file. If empty, the folder's record is used.
        moses: whether to tokenize and detokenize text as Moses does.

    Raises:
        UserError: the rules are unknown or of other languages, ``named`` is not a kind with its
            file, or ``moses`` is set while ``named`` is empty.
    """
    if not named:
        if moses:
            raise UserError(
                "Moses rules are for text whose subword model is named: name it with "
                "--sentencepiece-model or --bpe-codes, say --no-subwords, or leave --moses out"
            )
        found = manifest.read(folder)
        if found is None:
            raise UserError(
                f"{folder} does not say how its text became subwords (no manifest.json): name the "
                "subword model with --sentencepiece-model or --bpe-codes, or say --no-subwords"
            )
        source, target = map(found.steps_of, languages)
        return TextRules(found.kind, found.model, found.raw_text, (source, target))
    kind, model = next(iter(named.items()))
    fits = kind in subwords.KINDS and (kind == subwords.WORDS) == (model is None)
    if len(named) > 1 or not fits:
        raise UserError(
            f"one kind of subwords is needed, {' or '.join(subwords.MODEL_NAMES)} with the file of "
            f"its model or {subwords.WORDS} with None, got {dict(named)}"
        )
    source, target = (TextSteps(language, tokenize=moses) for language in languages)
    one_model = model is None  # a model that the user names may be of one language
    return TextRules(
        kind, None if model is None else Path(model), not moses, (source, target), one_model
    )
