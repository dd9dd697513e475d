"""Convert text to subwords and back, with a model from ``learn``.

Two kinds share an interface: byte-pair encoding by ``subword-nmt`` on tokenized text (``@@`` marks
an unfinished word), and a ``sentencepiece`` unigram model whose pieces restore the raw text
exactly. The third kind has no model: its tokens are the words between spaces.
"""

import io
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import sentencepiece

from hyptrans.data.dictionary import SPECIAL, UNKNOWN, symbols
from hyptrans.data.parallel import LineFunction
from hyptrans.support.errors import UserError
from hyptrans.support.extras import require
from hyptrans.support.files import read_bytes

WORDS = "none"
"""The kind without subwords."""
KINDS = ("subword-nmt", "sentencepiece", WORDS)
MODEL_NAMES = {"subword-nmt": "bpe.codes", "sentencepiece": "sentencepiece.model"}
WORD_START = "\u2581"
"""The symbol that sentencepiece writes for the space before a word."""
_VERSIONS = ("#version: 0.1", "#version: 0.2")
"""First lines of the models with which subword-nmt can encode."""
_MOST_OF_PIECES, _MOST_OF_CODES = 64 << 20, 16 << 20
"""Most bytes of a model; 256,000 pieces of 10 characters take 5 MB, 32,000 merges 0.5 MB."""
_MOST_MERGES = 1_000_000
_MOST_SHOWN = 160
"""Most characters of a library's message."""
_redirecting = threading.Lock()


@dataclass(frozen=True)
class Encoder:
    """Encodes lines with a learned model.

    Attributes:
        kind: one of ``KINDS``.
        model: file of the model; None if the kind has none.
        dictionary: for sentencepiece, a dictionary whose symbols are the only pieces to use; others
            are spelled out.
    """

    kind: str
    model: Path | None
    dictionary: Path | None = None

    def build(self) -> LineFunction:
        """Load the model and return the function from text to space-separated subwords."""
        if self.model is None:
            return without_reserved
        if self.kind == "subword-nmt":
            return _bpe_encoder(self.model)
        known = None if self.dictionary is None else frozenset(symbols(self.dictionary))
        return sentencepiece_encoder(self.model, known)


def _bpe_encoder(model: Path) -> LineFunction:
    module = require("subword_nmt.apply_bpe", "data")
    codes = read_bytes(model, _MOST_OF_CODES).decode()
    if codes.count("\n") > _MOST_MERGES:
        raise ValueError(f"it has more than {_MOST_MERGES:,} merges")
    first = codes.partition("\n")[0]
    # older files have no version; the library parses a long one in quadratic time
    if first.startswith("#version:") and first.rstrip("\r") not in _VERSIONS:
        raise ValueError("its version is neither 0.1 nor 0.2")
    return partial(_bpe_encode, module.BPE(io.StringIO(codes, newline="\n")))


def _bpe_encode(bpe: Any, line: str) -> str:
    # the cache holds every word seen: hundreds of megabytes on large corpora
    if len(bpe.cache) > 200_000:
        bpe.cache.clear()
    return _joined(bpe.segment_tokens(line.split()), within="@@ ")


def sentencepiece_encoder(
    model: Path, known: Collection[str] | None, *, one_model: bool = True
) -> LineFunction:
    """Return the function from text to space-separated pieces of a sentencepiece model.

    Args:
        model: file of the model.
        known: the pieces in the training text, to spell out all others; None for all pieces of the
            model, which may lack rare characters.
        one_model: whether ``known`` comes from this model alone, not from one model per language.

    Raises:
        ValueError: the file is larger than any model, empty, or not a file; or the model is the
            only one but lacks known pieces of more than one character.
        RuntimeError: the library cannot read the file.
    """
    found = read_bytes(model, _MOST_OF_PIECES)
    if not found:
        raise ValueError("it is empty")
    processor = sentencepiece.SentencePieceProcessor(model_proto=found)
    pieces = frozenset(processor.id_to_piece([*range(len(processor))]))
    known = pieces if known is None else known
    words = (piece for piece in known if len(piece) > 1 and piece.startswith(WORD_START))
    lacking = [piece for piece in words if piece not in pieces]
    if lacking and one_model:
        raise ValueError(
            f"it lacks {len(lacking):,} pieces of the dictionary: it is cut "
            "short or belongs to another dictionary"
        )
    return partial(_sentencepiece_encode, processor, known)


def _sentencepiece_encode(processor: Any, known: Collection[str], line: str) -> str:
    return _joined(processor.encode(line, out_type=str), within=" ", known=known)


@contextmanager
def reading(kind: str, model: Path) -> Iterator[None]:
    """Turn every error of a library that reads a model into one sentence.

    Raises:
        UserError: the model cannot be read.
    """
    said = io.StringIO()
    try:
        # subword-nmt prints its reason and ends the process
        with _redirecting, redirect_stderr(said):
            yield
    except ImportError:
        raise
    except (Exception, SystemExit) as error:
        found = (said.getvalue().splitlines() or [" ".join(str(error).split())])[0]
        # subword-nmt quotes the line of the file
        reason = found.partition(" file: ")[0][:_MOST_SHOWN]
        raise UserError(f"{model} is not a {kind} model ({reason})") from error


def _joined(subwords: list[str], within: str, known: Collection[str] | None = None) -> str:
    """Join subwords; spell out those that the dictionary lacks or that are reserved in fairseq."""
    return " ".join(
        within.join(one) if one in SPECIAL or (known is not None and one not in known) else one
        for one in subwords
    )


def without_reserved(line: str) -> str:
    """Return the words of a text; those that are reserved in fairseq become unknown."""
    return " ".join(UNKNOWN if word in SPECIAL else word for word in line.split())


def decode(kind: str, line: str) -> str:
    """Return the text of encoded subwords, as ``fairseq-generate --remove-bpe`` does."""
    if kind == WORDS:
        return line
    if kind == "subword-nmt":
        return (line + " ").replace("@@ ", "").removesuffix(" ")
    # the first piece starts with a space that was not in the text
    return line.replace(" ", "").replace(WORD_START, " ").removeprefix(" ")
