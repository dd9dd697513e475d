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

from hyptrans.support.errors import UserError
from hyptrans.support.extras import require
from hyptrans.support.files import whole_file, write_whole
from hyptrans.support.lines import read_lines
from hyptrans.support.progress import bar

# subword-nmt needs about 1.5 kB per word type (see recipes/wmt14_en_de), so this many stay below
# 4 GiB
MOST_WORD_TYPES = 2_000_000
RARE_LEFT_OUT = 0.9995
"""Coverage that sentencepiece advises for Chinese and Japanese."""
_TOO_MANY = re.compile(r"value <= (\d+)")
"""Finds the possible number of pieces in sentencepiece's error for a text that supports fewer."""
_TOO_FEW = re.compile(r"required_chars\. \d+ vs (\d+)")
"""Finds the needed number of pieces in sentencepiece's error for a text with more characters."""
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
        coverage: share of the text that the characters in pieces make up, the most frequent first;
            None for all characters or, if it adapts and they outnumber the pieces,
            ``RARE_LEFT_OUT``.

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
    lines = sum(1 for path in texts for _ in read_lines(path))
    stride = -(-lines // _SENTENCEPIECE_LINES)
    sys.stderr.write(f"learning {size} pieces from {-(-lines // stride)} lines\n")
    options: dict[str, Any] = {"vocab_size": size, "character_coverage": coverage or 1.0}
    while True:
        try:
            made = _train(texts, stride, **options)
            break
        except (RuntimeError, OSError) as error:
            said = str(error)
            if adapts and _TOO_MANY.search(said) and "hard_vocab_limit" not in options:
                options["hard_vocab_limit"] = False
            elif (
                adapts and _TOO_FEW.search(said) and options["character_coverage"] == 1 != coverage
            ):
                options["character_coverage"] = RARE_LEFT_OUT
            else:
                raise UserError(_sentencepiece_problem(said, size)) from error
    with whole_file(model) as file:
        file.write(made)
    pieces = len(sentencepiece.SentencePieceProcessor(model_proto=made))
    counts: dict[str, Any] = {"pieces": pieces}
    if pieces < size:
        counts["fewer than the default of"] = size
    if options["character_coverage"] < 1:
        counts["character coverage"] = options["character_coverage"]
    return counts


def _train(texts: list[Path], stride: int, **options: Any) -> bytes:
    every = (line for path in texts for line in read_lines(path))
    chosen = (line for number, line in enumerate(every) if number % stride == 0)
    result = io.BytesIO()
    interrupts: list[KeyboardInterrupt] = []
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=_noting(interrupts, chosen),
            model_writer=result,
            model_type="unigram",
            normalization_rule_name="identity",
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


def _sentencepiece_problem(message: str, size: int) -> str:
    if found := _TOO_MANY.search(message):
        return (
            f"--vocab-size {size} is more than this text supports, "
            f"sentencepiece allows at most {found[1]}"
        )
    if found := _TOO_FEW.search(message):
        return (
            f"--vocab-size {size} is too small for the characters of the text; use at least "
            f"{found[1]}, or --character-coverage {RARE_LEFT_OUT} for pieces without the rarest"
        )
    return f"sentencepiece could not learn a model: {message.splitlines()[-1]}"
