"""Whether two systems differ: sacreBLEU's paired bootstrap of BLEU and chrF."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sacrebleu.metrics import CHRF
from sacrebleu.significance import PairedTest

from hyptrans.evaluation.scores import DEFAULT_TOKENIZER, bleu_metric

SAMPLES = 1000
"""Resamplings of the test set, sacreBLEU's default."""


@dataclass(frozen=True)
class Comparison:
    """One metric of two systems on the same test set.

    Attributes:
        metric: its name.
        values: of the first and the second system.
        intervals: half widths of their 95 % confidence intervals.
        p: as sacreBLEU counts it, one-sided: how often a choice of sentences alone makes systems
            that do not differ differ by more, in one direction; of a two-sided test about twice.
            1 where no choice changes anything, as for systems that differ in nothing that counts,
            and where they differ in a single sentence that has a reference.
        signature: sacreBLEU's.
        differing: number of sentences with a reference in which the systems differ.
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
    lowercase: bool = False,
    tokenize: str = DEFAULT_TOKENIZER,
) -> list[Comparison]:
    """Compare two systems by paired bootstrap resampling (Koehn 2004), with sacreBLEU's seed.

    Args:
        first: translations of the system that the other is compared with.
        second: translations of the other.
        references: one for each.
        samples: resamplings of the test set.
        lowercase: take no notice of case.
        tokenize: sacreBLEU's name of a tokenizer for BLEU.

    Raises:
        UserError: the tokenizer is not installed.
    """
    signatures, found = PairedTest(
        [("first", first), ("second", second)],
        {
            "BLEU": bleu_metric(tokenize, lowercase=lowercase, references=[references]),
            "chrF": CHRF(lowercase=lowercase, references=[references]),
        },
        references=None,
        test_type="bs",
        n_samples=samples,
    )()
    counted = str.lower if lowercase else str
    pairs = zip(map(counted, first), map(counted, second), references, strict=True)
    telling = sum(one.split() != other.split() and bool(ref.strip()) for one, other, ref in pairs)
    made = []
    for name in signatures:
        one: Any
        other: Any
        one, other = found[name]
        # sacreBLEU counts differences above the found one, and there are none among equal ones
        never_above = other.p_value == 1 / (samples + 1)
        alike = one.score == other.score or one.ci == other.ci == 0
        made.append(
            Comparison(
                name,
                (one.score, other.score),
                (one.ci, other.ci),
                1.0 if telling < 2 or (never_above and alike) else other.p_value,
                signatures[name].format(short=False),
                telling,
            )
        )
    return made
