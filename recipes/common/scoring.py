"""Score the output of fairseq's commands: sacreBLEU of translations, perplexities of logs."""

import math
import re
import statistics
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from sacrebleu.metrics import BLEU

from hyptrans.evaluation import scores
from hyptrans.evaluation.scores import Score
from hyptrans.support.errors import UserError
from hyptrans.support.extras import require
from recipes.common.commands import NUMBER, UPDATE, VALID

_PERPLEXITY = re.compile(rf"\| valid \| .*\| ppl {NUMBER}(?!\S)")
# a part of a training begins with a line of its settings
_MOMENT = re.compile(
    r"^(\S+ \S+) \| INFO \| (?:(fairseq_cli\.train \| \{)|train_inner |train |valid )", re.MULTILINE
)
# messages of hyptrans, fairseq and fairseq's loss scaling
_DIVERGED = re.compile(r"gradients are nan|loss is probably exploding", re.IGNORECASE)
METRICS = {"bleu": scores.bleu, "chrf": scores.chrf}
TOKENS = "bleu_tokens"
"""BLEU of lower-cased Moses tokens, which multi-bleu computes and older papers report."""


@dataclass(frozen=True)
class Column:
    """A score of every model, and a column of the table.

    Attributes:
        key: name of the score in the results.
        title: name of the score in the table.
        beam: beam size, the number of hypotheses.
        metric: one of ``METRICS``, or ``TOKENS``.
    """

    key: str
    title: str
    beam: int
    metric: str = "bleu"


def score(metric: str, output: Path, references: Path, *, lowercase: bool = False) -> Score:
    """Score the raw text that ``fairseq-generate`` wrote to ``output``.

    The name of the file of ``references``, one per line, ends with the language.

    Raises:
        UserError: the numbers of sentences differ.
    """
    translations, lines = scores.detokenized(output), scores.read_text(references)
    scores.check_lengths(translations, output, lines, references)
    if metric != TOKENS:
        return METRICS[metric](translations, lines, lowercase=lowercase)
    moses = require("sacremoses", "data").MosesTokenizer(lang=references.suffix[1:])
    ours, theirs = (
        [moses.tokenize(line, return_str=True, escape=False) for line in text]
        for text in (translations, lines)
    )
    return scores.score_by(BLEU(tokenize="none", lowercase=True, force=True), ours, theirs)


def diverged(log: Path) -> bool:
    """Return whether a failed training ended because its numbers were no longer finite."""
    # look at the last line only: an earlier perplexity may be infinite although, say, the disk
    # was full
    lines = log.read_text(encoding="utf-8").rstrip().splitlines()
    return bool(lines) and _DIVERGED.search(lines[-1]) is not None


def course(log: Path) -> dict[str, Any]:
    """Read the curve of validation perplexity by update and the median speed from a log.

    The log may hold several parts of a training. If an update is logged twice, the later entry
    counts. The curve leaves out perplexities that are not finite.
    """
    text = log.read_text(encoding="utf-8")
    logged = {int(update): float(perplexity) for perplexity, update in VALID.findall(text)}
    curve = {update: value for update, value in logged.items() if math.isfinite(value)}
    speeds = [float(found[1]) for found in UPDATE.findall(text)]
    return {
        "curve": sorted(curve.items()),
        "updates_per_second": statistics.median(speeds) if speeds else None,
    }


def seconds(log: Path) -> int | None:
    """Return how long all parts of a training took, by the times of the log's lines.

    fairseq's own count (``wall``) is 0 after a restart.
    """
    last, total = None, 0.0
    for stamp, begins in _MOMENT.findall(log.read_text(encoding="utf-8")):
        moment = datetime.fromisoformat(stamp)
        if last is not None and not begins:
            total += (moment - last).total_seconds()
        last = moment
    return None if last is None else int(total)


def perplexity(log: Path) -> float:
    """Read the perplexity from a validation's log.

    Raises:
        UserError: the log has no perplexity.
    """
    found = _PERPLEXITY.findall(log.read_text(encoding="utf-8"))
    if not found:
        raise UserError(f"{log} names no perplexity")
    return float(found[-1])
