"""Test whether two models differ in BLEU beyond the choice of seeds and sentences."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics import BLEU

SAMPLES = 10_000
Array = NDArray[np.float64]


def compare(
    twin: Sequence[Sequence[str]], other: Sequence[Sequence[str]], references: Sequence[str]
) -> dict[str, Any]:
    """Compare two models by a hierarchical bootstrap with a fixed seed.

    Each sample draws with replacement seeds of both models, then sentences (the same for all
    seeds); its statistic is the difference of the mean BLEU over the drawn seeds.

    Args:
        twin: the twin's translations, by seed.
        other: the other model's translations, by seed.
        references: one per sentence.

    Returns:
        ``difference`` of the mean BLEU, ``interval`` of 95 % of the samples, and ``p``, twice the
        fraction of the samples on the rarer side of 0.
    """
    rng, count = np.random.default_rng(0), len(references)
    counts = np.stack([_counts(seed, references) for seed in (*twin, *other)])
    whole = _bleu(counts.sum(1))
    found = whole[len(twin) :].mean() - whole[: len(twin)].mean()
    differences = np.empty(SAMPLES)
    for sample in range(SAMPLES):
        weights = np.bincount(rng.integers(count, size=count), minlength=count)
        bleu = _bleu(np.einsum("n,snk->sk", weights, counts))
        ours = rng.choice(bleu[len(twin) :], len(other)).mean()
        differences[sample] = ours - rng.choice(bleu[: len(twin)], len(twin)).mean()
    rarer = min((differences <= 0).mean(), (differences >= 0).mean())
    interval = [round(float(end), 2) for end in np.quantile(differences, (0.025, 0.975))]
    # counting the observed sample too keeps p above 0
    p = min(1.0, 2 * (rarer * SAMPLES + 1) / (SAMPLES + 1))
    return {"difference": round(float(found), 2), "interval": interval, "p": round(p, 4)}


def _counts(translations: Sequence[str], references: Sequence[str]) -> Array:
    """Count per sentence: words of both sides, right n-grams and all n-grams, n from 1 to 4."""
    found = BLEU()._extract_corpus_statistics(translations, [references])
    return np.array(found, dtype=float)


def _bleu(sums: Array) -> Array:
    """Return BLEU of summed counts, 0 to 100; sacreBLEU's if every n has a right n-gram."""
    words, wanted, right, made = sums[..., 0], sums[..., 1], sums[..., 2:6], sums[..., 6:]
    with np.errstate(divide="ignore"):
        precision = np.exp(np.log(right / made).mean(-1))
    return np.asarray(100 * np.exp(np.minimum(0, 1 - wanted / words)) * precision)
