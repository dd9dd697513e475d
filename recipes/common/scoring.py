"""Score the output of ``fairseq-generate`` with sacreBLEU."""

from __future__ import annotations

from pathlib import Path

from sacrebleu.metrics import BLEU, CHRF

from hyptrans.evaluation import scores
from hyptrans.evaluation.scores import Score
from hyptrans.support.extras import require

METRICS = {"bleu": BLEU, "chrf": CHRF}
TOKENS = "bleu_tokens"
"""BLEU of lower-cased Moses tokens, which multi-bleu computes and older papers report."""


def score(metric: str, output: Path, references: Path, *, lowercase: bool = False) -> Score:
    """Score raw text.

    Args:
        metric: one of ``METRICS``, or ``TOKENS``.
        output: output file of ``fairseq-generate``.
        references: file with one reference per line; its name ends with the language.
        lowercase: ignore case.

    Raises:
        UserError: their numbers of sentences differ.
    """
    translations, lines = scores.detokenized(output), scores.read_text(references)
    scores.check_lengths(translations, output, lines, references)
    if metric != TOKENS:
        return scores.score_by(METRICS[metric](lowercase=lowercase), translations, lines)
    moses = require("sacremoses", "data").MosesTokenizer(lang=references.suffix[1:])
    ours, theirs = (
        [moses.tokenize(line, return_str=True, escape=False) for line in text]
        for text in (translations, lines)
    )
    return scores.score_by(BLEU(tokenize="none", lowercase=True, force=True), ours, theirs)
