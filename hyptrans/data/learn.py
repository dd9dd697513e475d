"""Learn a subword model jointly on both sides of the training text."""

import io
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import sentencepiece

from hyptrans.data.dictionary import SPECIAL
from hyptrans.support.errors import UserError
from hyptrans.support.extras import require
from hyptrans.support.files import whole_file, write_whole
from hyptrans.support.lines import read_lines
from hyptrans.support.progress import bar

# subword-nmt needs about 1.5 kB per word type (see recipes/wmt14_en_de), so this many stay below
# 4 GiB
MOST_WORD_TYPES = 2_000_000
RARE_LEFT_OUT = 0.9995
"""Share of a text that its frequent characters cover, as sentencepiece advises for Chinese."""
_TOO_MANY = re.compile(r"value <= (\d+)")
"""Finds the possible number of pieces in sentencepiece's error for a text that supports fewer."""
# the unigram model is learned from at most this many lines, evenly spread over the text
_SENTENCEPIECE_LINES = 4_000_000


def learn(
    kind: str,
    texts: list[Path],
    size: int,
    model: Path,
    *,
    adapts: bool = False,
    coverage: float | None = None,
) -> dict[str, Any]:
    """Learn a model from the lines of ``texts``, write it to ``model``, and return counts.

    Args:
        kind: a kind that has a model.
        texts: files.
        size: number of merges for subword-nmt, of pieces for sentencepiece.
        model: file to write.
        adapts: whether sentencepiece may learn fewer pieces if the text does not support ``size``.
        coverage: share of the text covered by the characters, most frequent first, that
            sentencepiece learns; None for all characters or, if it adapts and they outnumber the
            pieces, for ``RARE_LEFT_OUT`` with at most half as many characters as pieces.

    Raises:
        UserError: the text does not support a model of that size.
    """
    if kind == "subword-nmt":
        return _learn_bpe(texts, size, model)
    return _learn_sentencepiece(texts, size, model, adapts=adapts, coverage=coverage)


def _learn_bpe(texts: list[Path], size: int, model: Path) -> dict[str, Any]:
    module: Any = require("subword_nmt.learn_bpe", "data")
    counts = Counter(word for path in texts for line in read_lines(path) for word in line.split())
    types = len(counts)
    # a stable sort: words of equal count stay in order of appearance, which breaks ties
    kept = sorted(counts.items(), key=lambda item: -item[1])[:MOST_WORD_TYPES]
    counts.clear()
    codes = io.StringIO()
    sys.stderr.write(f"learning {size} merges from {len(kept)} distinct words, on one core\n")
    with TemporaryFile("w+", encoding="utf-8", newline="\n") as table:
        # a file, so that the words are not in memory twice
        table.writelines(f"{word} {count}\n" for word, count in kept)
        del kept
        table.seek(0)
        # its own bar writes ten times a second, even into log files
        module.tqdm = lambda items: bar(items, "learn subwords", len(items), " merges", 2.0)
        module.learn_bpe(table, codes, size, is_dict=True)
    write_whole(model, codes.getvalue())
    return {
        "word types": types,
        "rarest word types not used": max(0, types - MOST_WORD_TYPES),
        "merges": codes.getvalue().count("\n") - 1,
    }


def _learn_sentencepiece(
    texts: list[Path], size: int, model: Path, *, adapts: bool, coverage: float | None
) -> dict[str, Any]:
    characters: Counter[str] = Counter()
    lines = 0
    for path in texts:
        for line in read_lines(path):
            characters.update(line)
            lines += 1
    distinct = len(characters)
    del characters[" "]
    least = distinct + len(SPECIAL)
    rare: set[str] = set()
    if coverage is not None:
        rare = _rare(characters, coverage, distinct)
    elif adapts and size < least:
        rare = _rare(characters, RARE_LEFT_OUT, size // 2)
    stride = -(-lines // _SENTENCEPIECE_LINES)
    sys.stderr.write(f"learning {size} pieces from {-(-lines // stride)} lines\n")
    # required, as the stride may skip the lines that have them
    options = {"vocab_size": size, "required_chars": "".join(sorted(characters.keys() - rare))}
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
    counts: dict[str, Any] = {"pieces": pieces, "characters": distinct}
    if pieces < size:
        counts["fewer than the default of"] = size
    if rare:
        counts["characters in pieces"] = distinct - len(rare)
    return counts


def _rare(counts: Counter[str], coverage: float, most: int) -> set[str]:
    """Return all characters but the most frequent ones: ``most``, or those that cover a share."""
    left = coverage * counts.total()
    rare = set()
    # characters of equal count are sorted by code point
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
            # longer lines would be skipped silently
            max_sentence_length=1 << 30,
            # the result depends on the number of threads, so it does not follow --workers
            num_threads=4,
            minloglevel=1,
            **options,
        )
    except RuntimeError:
        # sentencepiece turns every error of its iterator into this one, even Ctrl-C
        if interrupts:
            raise interrupts[0] from None
        raise
    return result.getvalue()


def _noting(interrupts: list[KeyboardInterrupt], lines: Iterable[str]) -> Iterator[str]:
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
            f"--vocab-size {size} is too small for the {least - len(SPECIAL)} distinct "
            f"characters of the text; use at least {least}, or --character-coverage "
            f"{RARE_LEFT_OUT} for pieces without the rarest characters"
        )
    return f"sentencepiece could not learn a model: {message.splitlines()[-1]}"
