import random
from collections import Counter

import pytest

from hyptrans.data.clean import CleanRule


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        ("a b c", "x y", None),
        ("a b c d", "x y", "ratio above 1.5"),
        ("x y", "a b c d", "ratio above 1.5"),
        ("", "a", "empty side"),
        ("a", "  ", "empty side"),
        (" ".join("a" * 6), " ".join("a" * 5), "longer than 5"),
    ],
)
def test_pairs_are_dropped_for_the_first_reason(source, target, reason):
    assert CleanRule(maximum=5, ratio=1.5).why_dropped(source, target) == reason


def test_rule_agrees_with_the_definition_of_the_moses_script():
    rng = random.Random(4)
    rule = CleanRule(maximum=20, ratio=1.5)
    for _ in range(2000):
        m, n = rng.randint(0, 25), rng.randint(0, 25)
        keep = 1 <= m <= 20 and 1 <= n <= 20 and m / n <= 1.5 and n / m <= 1.5
        assert (rule.why_dropped("w " * m, "v " * n) is None) == keep


def test_keep_counts_every_pair_once():
    dropped = Counter()
    pairs = [("a", "b"), ("", "b"), ("a a a", "b"), ("c", "d")]
    kept = list(CleanRule(ratio=2.0).keep(pairs, dropped))
    assert kept == [("a", "b"), ("c", "d")]
    assert dropped == {"empty side": 1, "ratio above 2": 1}
