"""From the text of a sentence to the subwords that a checkpoint's encoder was trained on.

The same code as in ``data-prep/`` does the work; here every character is followed on its way.
"""

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unicodedata import normalize

from hyptrans.data import manifest, recorded, subwords
from hyptrans.data.corpus import Scrubber
from hyptrans.data.moses import TextSteps
from hyptrans.support.errors import UserError
from probing.text.align import Piece, Traced, compare, map_characters

Offsets = list[tuple[str, int, int]]

# how sentencepiece writes a space
_SPACE = "\u2581"
_WORD = re.compile(r"\S+")
# how to tokenize, not a step of its own
_MANNER = "aggressive"


@dataclass(frozen=True)
class Options:
    """How text becomes pieces, where no prepared folder says so.

    Attributes:
        data_bin: folder of the dictionaries, for a checkpoint whose data lies elsewhere.
        sentencepiece_model: file of a sentencepiece model.
        bpe_codes: file of subword-nmt codes.
        moses: tokenize and escape as Moses does.
        lowercase: lower-case the text.
        language: of the Moses rules.
    """

    data_bin: Path | None = None
    sentencepiece_model: Path | None = None
    bpe_codes: Path | None = None
    moses: bool = False
    lowercase: bool = False
    language: str = "en"


class Segmenter:
    """Text to pieces; each piece knows its characters of the text.

    Args:
        steps: what happens to the text before subwords.
        raw_text: every Unicode space becomes a plain one, as ``--raw-text`` of the data preparation
            does.
        kind: of subwords, one of ``subwords.KINDS``.
        model: file of the subword model, None for a kind that has none.
        spell_out: which sentencepiece pieces are spelled out, character by character.

    Raises:
        UserError: the model cannot be read.
    """

    def __init__(
        self,
        steps: TextSteps,
        *,
        raw_text: bool,
        kind: str,
        model: Path | None,
        spell_out: Callable[[str], bool],
    ) -> None:
        self._scrub = Scrubber(raw_text=raw_text)
        self._steps = [
            (flag, _step(steps, flag))
            for flag in recorded.STEPS
            if flag != _MANNER and getattr(steps, flag)
        ]
        self._split: Callable[[str], Offsets]
        if model is None:
            self._split = _words
            return
        if not model.is_file():
            raise UserError(f"{model} is not a file: name the subword model with --data")
        with subwords.reading(kind, model):
            if kind == "sentencepiece":
                self._split = _sentencepiece_splitter(model, spell_out)
            else:
                self._split = _bpe_splitter(model)

    def __call__(self, text: str) -> list[Piece]:
        """Pieces of a text, in its order."""
        traced = self.prepare(text)
        return [
            Piece(piece, *traced.hull(start, end)) for piece, start, end in self._split(traced.text)
        ]

    def prepare(self, text: str) -> Traced:
        """The text as the subword model gets it."""
        traced = map_characters(Traced.of(text), self._scrub)
        for flag, step in self._steps:
            if flag == "tokenize":
                traced = compare(traced, step(traced.text), _as_it_is, escaped=True)
            elif flag == "normalize":
                traced = compare(traced, step(traced.text), step)
            else:
                traced = map_characters(traced, step)
        return traced


def from_prepared(folder: Path, language: str, dictionary: Any) -> Segmenter:
    """As one side of the test set was made in a folder that ``data-prep/`` wrote.

    Args:
        folder: with ``manifest.json``, the subword model and ``data-bin``.
        language: of that side.
        dictionary: fairseq's, of that language.

    Raises:
        UserError: the folder is none of those, or of other languages.
    """
    found = recorded.read(folder)
    if found is None:
        raise UserError(
            f"{folder} has no {manifest.NAME}: name the folder that data-prep/ wrote with --data, "
            "or the pieces with --data-bin and --sentencepiece-model or --bpe-codes"
        )
    known = frozenset(dictionary.symbols[dictionary.nspecial :])
    return Segmenter(
        found.steps_of(language),
        raw_text=found.raw_text,
        kind=found.kind,
        model=found.model,
        # as in the sets that were encoded with the pieces of the training text
        spell_out=lambda piece: piece not in known,
    )


def ways(options: Options) -> list[str]:
    """The flags that say what happens to text before pieces, of those that were given."""
    default = Options()
    return [
        f"--{name}"
        for name in ("moses", "lowercase", "language")
        if getattr(options, name) != getattr(default, name)
    ]


def from_options(options: Options, dictionary: Any) -> Segmenter:
    """As flags say.

    Raises:
        UserError: they name no subword model, or two.
    """
    models: dict[str, Path | None] = {
        "sentencepiece": options.sentencepiece_model,
        "subword-nmt": options.bpe_codes,
    }
    named = [(kind, model) for kind, model in models.items() if model is not None]
    if len(named) != 1:
        raise UserError(
            "the pieces need one of --sentencepiece-model and --bpe-codes, or --data with the "
            f"folder that data-prep/ wrote; {len(named)} of the two were given"
        )
    reserved: Collection[str] = frozenset(dictionary.symbols[: dictionary.nspecial])
    return Segmenter(
        TextSteps(options.language, tokenize=options.moses, lowercase=options.lowercase),
        raw_text=not options.moses,
        kind=named[0][0],
        model=named[0][1],
        spell_out=lambda piece: piece in reserved,
    )


def _step(steps: TextSteps, flag: str) -> Callable[[str], str]:
    """One of the steps alone."""
    manner = {_MANNER: steps.aggressive} if flag == "tokenize" else {}
    return TextSteps(steps.language, **{flag: True}, **manner).build()


def _as_it_is(character: str) -> str:
    return character


def _words(text: str) -> Offsets:
    found = [(word.group(), *word.span()) for word in _WORD.finditer(text)]
    return [(subwords.without_reserved(word), start, end) for word, start, end in found]


def _bpe_splitter(model: Path) -> Callable[[str], Offsets]:
    encode = subwords.Encoder("subword-nmt", model).build()

    def split(text: str) -> Offsets:
        found: Offsets = []
        for word in _WORD.finditer(text):
            *unfinished, last = encode(word.group()).split(" ")
            start = word.start()
            for piece, length in [(p, len(p) - len("@@")) for p in unfinished] + [
                (last, len(last))
            ]:
                found.append((piece, start, start + length))
                start += length
        return found

    return split


def _sentencepiece_splitter(
    model: Path, spell_out: Callable[[str], bool]
) -> Callable[[str], Offsets]:
    processor = subwords.load_sentencepiece(model)

    def split(text: str) -> Offsets:
        found: Offsets = []
        for piece, start, end in _offsets(processor, text):
            if spell_out(piece):
                found += _spelled(piece, start, end)
            else:
                found.append((piece, start, end))
        return found

    return split


def _offsets(processor: Any, text: str) -> Offsets:
    """Pieces with the characters of the text that each was made from, as the model counts them.

    A character that normalization makes into several counts there for the piece with the last one
    only; here for all of them.
    """
    found = processor.encode(text, return_type="offset_mapping")
    return [
        (piece, start, end + (len(piece.replace(_SPACE, "")) > _most_made_of(text[start:end])))
        for piece, (start, end) in zip(found["pieces"], found["offsets"], strict=True)
    ]


def _most_made_of(part: str) -> int:
    """How many characters, spaces aside, sentencepiece's normalizations make at most."""
    return max(len("".join(form.split())) for form in (part, normalize("NFKC", part)))


def _spelled(piece: str, start: int, end: int) -> Offsets:
    """The characters of a piece, each with its own of the text where they are as many."""
    # the space mark before the first word stands for no character
    offset = len(piece) - (end - start)
    if offset == 0 or (offset == 1 and piece.startswith(_SPACE)):
        places = [max(start, start + i - offset) for i in range(len(piece))]
        ends = [start + i - offset + 1 for i in range(len(piece))]
        return list(zip(piece, places, ends, strict=True))
    return [(character, start, end) for character in piece]
