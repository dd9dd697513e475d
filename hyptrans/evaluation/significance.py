"""Test whether two systems differ, by sacreBLEU's paired bootstrap of BLEU and chrF."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sacrebleu.metrics import CHRF
from sacrebleu.significance import PairedTest

from hyptrans.evaluation.scores import DEFAULT_TOKENIZER, bleu_metric

SAMPLES = 1000
"""Number of resamplings of the test set, sacreBLEU's default."""


@dataclass(frozen=True)
class Comparison:
    """One metric of two systems on the same test set.

    Attributes:
        metric: its name.
        values: scores of the first and the second system.
        intervals: half-widths of their 95 % confidence intervals.
        p: one-sided, as sacreBLEU counts it: how often the choice of sentences alone makes equal
            systems differ by more, in one direction; a two-sided test has about twice this value.
            It is 1 if no choice changes anything, as when no difference affects the score, and
            if the systems differ in a single sentence that has a reference.
        signature: sacreBLEU's.
        differing: number of sentences that have a reference and in which the systems differ.
    """

    metric: str
    values: tuple[float, float]
    intervals: tuple[float, float]
    p: float
    signature: str
    differing: int


def compare(
    first: Sequence[str],
    second: Sequence[str],
    references: Sequence[str],
    *,
    samples: int = SAMPLES,
    tokenize: str = DEFAULT_TOKENIZER,
) -> list[Comparison]:
    """Compare two systems by paired bootstrap resampling (Koehn 2004), with sacreBLEU's seed.

    Args:
        first: translations of the baseline.
        second: translations of the system that is compared with it.
        references: one for each sentence.
        samples: number of resamplings of the test set.
        tokenize: sacreBLEU's name of a tokenizer for BLEU.

    Raises:
        UserError: the tokenizer is not installed.
    """
    signatures, found = PairedTest(
        [("first", first), ("second", second)],
        {
            "BLEU": bleu_metric(tokenize, references=[references]),
            "chrF": CHRF(references=[references]),
        },
        references=None,
        test_type="bs",
        n_samples=samples,
    )()
    pairs = zip(first, second, references, strict=True)
    telling = sum(one.split() != other.split() and bool(ref.strip()) for one, other, ref in pairs)
    made = []
    for name, signature in signatures.items():
        one: Any
        other: Any
        one, other = found[name]
        # sacreBLEU counts differences above the actual one; among equal ones there are none
        never_above = other.p_value == 1 / (samples + 1)
        alike = one.score == other.score or one.ci == other.ci == 0
        p = 1.0 if telling < 2 or (never_above and alike) else other.p_value
        values, intervals = (one.score, other.score), (one.ci, other.ci)
        made.append(Comparison(name, values, intervals, p, signature.format(short=False), telling))
    return made
