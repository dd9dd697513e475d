"""Subword models: learn one jointly on both sides of the training text, then encode with it.

Two kinds with one shape: byte-pair encoding by ``subword-nmt`` on tokenized text (``@@`` marks an
unfinished word), and a ``sentencepiece`` unigram model whose pieces give back the raw text exactly.
The third kind has no model: its tokens are the words between the spaces of the text.
"""

import gc
import io
import re
import sys
import threading
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import sentencepiece

from hyptrans.dataprep.steps import rules
from hyptrans.dataprep.steps.parallel import LineFunction
from hyptrans.support.errors import UserError, clean
from hyptrans.support.extras import require
from hyptrans.support.files import read_bytes, whole_file, write_whole
from hyptrans.support.lines import read_lines, write_lines
from hyptrans.support.progress import bar

WORDS = "none"
"""The kind without subwords."""
KINDS = ("subword-nmt", "sentencepiece", WORDS)
MODEL_NAMES = {"subword-nmt": "bpe.codes", "sentencepiece": "sentencepiece.model"}
WORD_START = "\u2581"
"""What sentencepiece writes for the space before a word."""
# fairseq's own symbols; as a subword in the text they would become padding or an end of sentence
_UNKNOWN = "<unk>"
_RESERVED = frozenset({"<s>", "<pad>", "</s>", _UNKNOWN})
# subword-nmt needs about 1.5 kB for a word type (see recipes/wmt14_en_de), so this many stay below
# 4 GiB
MOST_WORD_TYPES = 2_000_000
RARE_LEFT_OUT = 0.9995
"""Share of a text without its rarest characters, as sentencepiece advises for Chinese."""
_TOO_MANY = re.compile(r"value <= (\d+)")
"""In what sentencepiece says of a text that supports fewer pieces: how many."""
# the unigram model is learned from at most this many lines, evenly spread over the text
_SENTENCEPIECE_LINES = 4_000_000
# fairseq rounds the size of a dictionary up to a multiple of this
_DICTIONARY_MULTIPLE = 8
_SPECIAL_SYMBOLS = 4
_VERSIONS = ("#version: 0.1", "#version: 0.2")
"""First lines of subword-nmt's models; the library encodes with these."""
_MOST_OF_CODES = 16 << 20
"""Bytes; 32,000 merges take half a million."""
_MOST_MERGES = 1_000_000
_MOST_SHOWN = 160
"""Characters of what a library says."""
_redirecting = threading.Lock()


def learn(
    kind: str,
    texts: list[Path],
    size: int,
    model: Path,
    *,
    adapts: bool = False,
    coverage: float | None = None,
) -> dict[str, Any]:
    """Learn a model of one kind from the lines of ``texts``, write it to ``model``, and count.

    Args:
        kind: one of those that have a model.
        texts: files.
        size: number of merges for subword-nmt, of pieces for sentencepiece.
        model: file to write.
        adapts: sentencepiece may have fewer pieces where the text does not support that many.
        coverage: share of the text that the characters make up, most frequent first, which
            sentencepiece learns from; None for all of them or, if it adapts and they are more than
            the pieces, ``RARE_LEFT_OUT``, at most as many as half of the pieces.

    Raises:
        UserError: the text does not support a model of that size.
    """
    if kind == "subword-nmt":
        return _learn_bpe(texts, size, model)
    return _learn_sentencepiece(texts, size, model, adapts=adapts, coverage=coverage)


def _learn_bpe(texts: list[Path], size: int, model: Path) -> dict[str, Any]:
    module = require("subword_nmt.learn_bpe", "data")
    counts: Counter[str] = Counter()
    for path in texts:
        for line in read_lines(path):
            counts.update(line.split())
    types = len(counts)
    # a stable sort: words of equal count stay in order of appearance, which decides ties
    kept = sorted(counts.items(), key=lambda item: -item[1])[:MOST_WORD_TYPES]
    counts.clear()
    codes = io.StringIO()
    sys.stderr.write(f"learning {size} merges from {len(kept)} distinct words, on one core\n")
    with TemporaryFile("w+", encoding="utf-8", newline="\n") as table:
        # a file, as the words need not be in memory twice
        table.writelines(f"{word} {count}\n" for word, count in kept)
        del kept
        table.seek(0)
        with _learning(module):
            module.learn_bpe(table, codes, size, is_dict=True)
    write_whole(model, codes.getvalue())
    return {
        "word types": types,
        "rarest word types not used": max(0, types - MOST_WORD_TYPES),
        "merges": codes.getvalue().count("\n") - 1,
    }


@contextmanager
def _learning(module: Any) -> Iterator[None]:
    # its own bar draws ten times a second, also into log files
    original = module.tqdm
    module.tqdm = lambda items: bar(items, "learn subwords", len(items), " merges", 2.0)
    # millions of tuples and no cycles: looking for garbage takes a third of the time
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        module.tqdm = original
        if collecting:
            gc.enable()


def _learn_sentencepiece(
    texts: list[Path], size: int, model: Path, *, adapts: bool, coverage: float | None
) -> dict[str, Any]:
    characters: set[str] = set()
    lines = 0
    for path in texts:
        for line in read_lines(path):
            characters.update(line)
            lines += 1
    least = len(characters) + _SPECIAL_SYMBOLS
    rare: set[str] = set()
    if coverage is not None:
        rare = _rare(texts, coverage, len(characters))
    elif adapts and size < least:
        rare = _rare(texts, RARE_LEFT_OUT, size // 2)
    stride = -(-lines // _SENTENCEPIECE_LINES)
    sys.stderr.write(f"learning {size} pieces from {-(-lines // stride)} lines\n")
    # characters of lines left out by the stride
    options = {"vocab_size": size, "required_chars": "".join(sorted(characters - rare - {" "}))}
    try:
        try:
            made = _train(texts, stride, rare, **options)
        except RuntimeError as error:
            if not adapts or not _TOO_MANY.search(str(error)):
                raise
            made = _train(texts, stride, rare, **options, hard_vocab_limit=False)
    except (RuntimeError, OSError) as error:
        raise UserError(_sentencepiece_problem(str(error), size, least)) from error
    with whole_file(model) as file:
        file.write(made)
    pieces = len(sentencepiece.SentencePieceProcessor(model_proto=made))
    counts: dict[str, Any] = {"pieces": pieces, "characters": len(characters)}
    if pieces < size:
        counts["fewer than the default of"] = size
    if rare:
        counts["characters in pieces"] = len(characters) - len(rare)
    return counts


def _rare(texts: list[Path], coverage: float, most: int) -> set[str]:
    """The characters of a text but the frequent ones: ``most``, or those that make up a share."""
    counts = Counter(character for path in texts for line in read_lines(path) for character in line)
    del counts[" "]
    left = coverage * counts.total()
    rare = set()
    # those of one count by their code points
    for rank, (character, count) in enumerate(sorted(counts.items(), key=lambda i: (-i[1], i[0]))):
        if left <= 0 or rank >= most:
            rare.add(character)
        left -= count
    return rare


def _train(texts: list[Path], stride: int, rare: set[str], **options: Any) -> bytes:
    spaces = str.maketrans(dict.fromkeys(rare, " "))
    every = (line.translate(spaces) for path in texts for line in read_lines(path))
    chosen = (line for number, line in enumerate(every) if number % stride == 0)
    result = io.BytesIO()
    interrupts: list[KeyboardInterrupt] = []
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=_noting(interrupts, chosen),
            model_writer=result,
            model_type="unigram",
            normalization_rule_name="identity",
            character_coverage=1.0,
            remove_extra_whitespaces=False,
            # longer lines would be skipped without a word
            max_sentence_length=1 << 30,
            # results depend on the number of threads, so it does not follow --workers
            num_threads=4,
            minloglevel=1,
            **options,
        )
    except RuntimeError:
        if interrupts:
            raise interrupts[0] from None
        raise
    return result.getvalue()


def _noting(interrupts: list[KeyboardInterrupt], lines: Iterable[str]) -> Iterator[str]:
    # sentencepiece tells of all that its text raises as one RuntimeError, of Ctrl-C too
    try:
        yield from lines
    except KeyboardInterrupt as interrupt:
        interrupts.append(interrupt)
        raise


def _sentencepiece_problem(message: str, size: int, least: int) -> str:
    if found := _TOO_MANY.search(message):
        return (
            f"--vocab-size {size} is more than this text supports, "
            f"sentencepiece allows at most {found[1]}"
        )
    if "required_chars" in message or "smaller" in message:
        return (
            f"--vocab-size {size} is too small for the {least - _SPECIAL_SYMBOLS} distinct "
            f"characters of the text; use at least {least}, or --character-coverage "
            f"{RARE_LEFT_OUT} for pieces without the rarest characters"
        )
    return f"sentencepiece could not learn a model: {message.splitlines()[-1]}"


@dataclass(frozen=True)
class Encoder:
    """Encodes lines with a learned model.

    Attributes:
        kind: one of ``KINDS``.
        model: file of the model; None where the kind has none.
        pieces: for sentencepiece, a file of the pieces that training has; others are spelled out.
    """

    kind: str
    model: Path | None
    pieces: Path | None = None

    def build(self) -> LineFunction:
        """Load the model and return the function from text to space-separated subwords."""
        if self.model is None:
            return without_reserved
        if self.kind == "subword-nmt":
            return _bpe_encoder(self.model)
        known = None if self.pieces is None else frozenset(read_lines(self.pieces))
        return sentencepiece_encoder(self.model, known)


def _bpe_encoder(model: Path) -> LineFunction:
    module = require("subword_nmt.apply_bpe", "data")
    bpe = module.BPE(io.StringIO(_codes(model), newline="\n"))

    def encode(line: str) -> str:
        # the cache holds every word ever seen: hundreds of megabytes on large corpora
        if len(bpe.cache) > 200_000:
            bpe.cache.clear()
        subwords = bpe.segment_tokens(line.split())
        return " ".join(_harmless(subwords, joiner="@@ "))

    return encode


def _codes(model: Path) -> str:
    """The merges of subword-nmt, if they are ones that it can use in reasonable time.

    Raises:
        ValueError: they are not.
    """
    codes = read_bytes(model, _MOST_OF_CODES).decode()
    if codes.count("\n") > _MOST_MERGES:
        raise ValueError(f"it has more than {_MOST_MERGES:,} merges")
    first = codes.partition("\n")[0]
    # older files have none; the library looks for the end of a long one in quadratic time
    if first.startswith("#version:") and first.rstrip("\r") not in _VERSIONS:
        raise ValueError("its version is neither 0.1 nor 0.2")
    return codes


def sentencepiece_encoder(model: Path, known: Collection[str] | None) -> LineFunction:
    """The function from text to space-separated pieces of a sentencepiece model.

    Args:
        model: file of the model.
        known: the pieces that training has, where others are to be spelled out; else those of the
            model, which lacks rare characters if it was learned so.
    """
    processor = rules.load(model)
    if known is None:
        known = frozenset(processor.id_to_piece([*range(len(processor))]))

    def encode(line: str) -> str:
        subwords = processor.encode(line, out_type=str)
        return " ".join(_harmless(subwords, joiner=" ", known=known))

    return encode


@contextmanager
def reading(kind: str, model: Path) -> Iterator[None]:
    """Whatever a library says of a file that is no model of its kind, in one sentence.

    Raises:
        UserError: the model cannot be read.
    """
    said = io.StringIO()
    try:
        with nullcontext() if kind == "sentencepiece" else _said_to(said):
            yield
    except ImportError:
        raise
    except (Exception, SystemExit) as error:
        reason = (said.getvalue().splitlines() or [" ".join(str(error).split())])[0][:_MOST_SHOWN]
        raise UserError(f"{model} is not a {kind} model ({reason})") from error
    sys.stderr.write(clean(said.getvalue()))


@contextmanager
def _said_to(file: io.StringIO) -> Iterator[None]:
    """Collect what subword-nmt writes before it ends the process, one thread at a time."""
    with _redirecting, redirect_stderr(file):
        yield


def _harmless(
    subwords: list[str], joiner: str, known: Collection[str] | None = None
) -> Iterator[str]:
    """Spell out the subwords that the dictionary lacks or that mean something else to fairseq."""
    for subword in subwords:
        if subword in _RESERVED or (known is not None and subword not in known):
            yield joiner.join(subword)
        else:
            yield subword


def without_reserved(line: str) -> str:
    """The words of a text; those that mean something else to fairseq become unknown."""
    return " ".join(_UNKNOWN if word in _RESERVED else word for word in line.split())


def decode(kind: str, line: str) -> str:
    """Give back the text of encoded subwords, as ``fairseq-generate --remove-bpe`` does."""
    if kind == WORDS:
        return line
    if kind == "subword-nmt":
        return (line + " ").replace("@@ ", "").removesuffix(" ")
    # the first piece starts with a space that was not in the text
    return line.replace(" ", "").replace(WORD_START, " ").removeprefix(" ")


def used_pieces(encoded: Iterable[Path]) -> Counter[str]:
    """Count the subwords of encoded files."""
    counts: Counter[str] = Counter()
    for path in encoded:
        for line in read_lines(path):
            counts.update(line.split())
    return counts


def write_dictionary(counts: Counter[str], characters: set[str], path: Path) -> int:
    """Write a fairseq dictionary: the subwords seen, then the characters never seen alone.

    With every character of the training text as a symbol of its own, only characters that the
    training text does not have can become ``<unk>``.
    """
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    alone = sorted(characters - counts.keys())
    rows = [f"{piece} {count}" for piece, count in ordered] + [f"{piece} 0" for piece in alone]
    fillers = -(len(rows) + _SPECIAL_SYMBOLS) % _DICTIONARY_MULTIPLE
    rows += [f"madeupword{number:04d} 0" for number in range(fillers)]
    return write_lines(rows, path)
