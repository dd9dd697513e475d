"""Learn a subword model jointly on both sides of the training text, by the libraries' trainers."""

import io
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import sentencepiece

from hyptrans.support.errors import UserError
from hyptrans.support.extras import require
from hyptrans.support.files import whole_file, write_whole
from hyptrans.support.lines import read_lines
from hyptrans.support.progress import bar

RARE_LEFT_OUT = 0.9995
"""Share of a text that its most frequent characters make up; sentencepiece advises this coverage
for Chinese and Japanese."""
_SENTENCEPIECE_LINES = 4_000_000
"""Most lines to learn the unigram model from; sentencepiece samples from longer texts."""


def learn(kind: str, texts: list[Path], size: int, model: Path) -> dict[str, float]:
    """Learn a model from the lines of ``texts``, write it to ``model``, and return counts.

    A text that supports no model of this size gets a smaller one. Where characters outnumber the
    pieces, only the most frequent become pieces (:data:`RARE_LEFT_OUT`).

    ``size`` is the number of merges for subword-nmt, of pieces for sentencepiece.

    Raises:
        UserError: sentencepiece cannot learn so few pieces.
    """
    if kind == "subword-nmt":
        codes = io.StringIO()
        module: Any = require("subword_nmt.learn_bpe", "data")
        # its own bar writes ten times a second, even into log files
        module.tqdm = lambda items: bar(items, "learn subwords", len(items), " merges", 2.0)
        module.learn_bpe(_lines(texts), codes, size)
        write_whole(model, codes.getvalue())
        return {"merges": codes.getvalue().count("\n") - 1}
    coverage = 1.0
    try:
        made = _sentencepiece(texts, size, coverage)
    except UserError as error:
        if "required_chars" not in str(error):
            raise
        coverage = RARE_LEFT_OUT
        made = _sentencepiece(texts, size, coverage)
    with whole_file(model) as file:
        file.write(made)
    pieces = len(sentencepiece.SentencePieceProcessor(model_proto=made))
    return {"pieces": pieces, "character coverage": coverage}


def _sentencepiece(texts: list[Path], size: int, coverage: float) -> bytes:
    made = io.BytesIO()
    sentencepiece.set_random_generator_seed(1)
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=_lines(texts),
            model_writer=made,
            model_type="unigram",
            vocab_size=size,
            hard_vocab_limit=False,
            character_coverage=coverage,
            input_sentence_size=_SENTENCEPIECE_LINES,
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            # longer lines would be skipped silently
            max_sentence_length=1 << 30,
            # the result depends on the number of threads, so it does not follow --workers
            num_threads=4,
            minloglevel=1,
        )
    except (RuntimeError, OSError) as error:
        # sentencepiece turns every error of its iterator into this one, even Ctrl-C
        if "KeyboardInterrupt" in str(error):
            raise KeyboardInterrupt from None
        reason = str(error).rpartition("] ")[2]
        raise UserError(f"sentencepiece cannot learn --vocab-size {size}: {reason}") from error
    return made.getvalue()


def _lines(texts: list[Path]) -> Iterator[str]:
    return chain.from_iterable(map(read_lines, texts))
