"""The hierarchical bootstrap of BLEU, against sacreBLEU and against samples by hand."""

import numpy as np
import pytest
from sacrebleu.metrics import BLEU

from recipes.study import bootstrap

WORDS = ("the", "old", "dog", "runs", "to", "a", "tree", "in", "our", "park", "sleeps", "there")


def corpus(rng, sentences, errors):
    """References, and translations with some words replaced."""
    references = [" ".join(rng.permutation(WORDS)) for _ in range(sentences)]
    made = [
        " ".join("cat" if rng.random() < errors else word for word in line.split())
        for line in references
    ]
    return references, made


def test_bleu_from_summed_counts_matches_sacrebleu():
    references, made = corpus(np.random.default_rng(1), 30, 0.2)
    sums = bootstrap._counts(made, references).sum(0)
    expected = BLEU().corpus_score(made, [references]).score
    assert bootstrap._bleu(sums) == pytest.approx(expected, abs=1e-9)


def test_bootstrap_detects_only_models_better_with_every_seed(monkeypatch):
    monkeypatch.setattr(bootstrap, "SAMPLES", 500)
    rng = np.random.default_rng(2)
    references, _ = corpus(rng, 60, 0.0)

    def seeds(errors):
        return [
            [
                " ".join("cat" if rng.random() < e else w for w in line.split())
                for line in references
            ]
            for e in errors
        ]

    worse, better = seeds([0.3, 0.31, 0.32]), seeds([0.1, 0.11, 0.12])
    found = bootstrap.compare(worse, better, references)
    assert found["p"] == pytest.approx(2 / 501, abs=1e-4)
    assert found["interval"][0] > 0
    means = [
        np.mean([BLEU().corpus_score(x, [references]).score for x in y]) for y in (worse, better)
    ]
    assert found["difference"] == pytest.approx(means[1] - means[0], abs=0.01)
    assert bootstrap.compare(worse, better, references) == found
    # one seed of each is far off: sentences alone would tell them apart, seeds do not
    spread = bootstrap.compare(seeds([0.1, 0.3]), seeds([0.12, 0.28]), references)
    assert spread["p"] > 0.2
