"""Which rates are tried, and tests of significance against counts by hand."""

import itertools
import math
from dataclasses import dataclass

import pytest

from recipes.common import seeds
from recipes.common.exact import Training
from recipes.common.grid import Grid
from recipes.common.search import search


@dataclass(frozen=True)
class Trial:
    rate: float


def tried(score, rates=(1.0, 2.0, 4.0), most=12):
    """Rates of a search where everything that it names is done, and whether it closes."""
    done = {}

    def known(trial):
        return done.get(trial.rate)

    for _ in range(most):
        found = search(Trial, rates, known)
        if not found.is_open:
            return [trial.rate for trial in found.trials], found.best.rate
        done.update({trial.rate: score(trial.rate) for trial in found.trials})
    raise AssertionError(f"still open at {sorted(done)}")


@pytest.mark.parametrize(
    ("best", "rates"),
    [
        (2.0, [1.0, 2.0, 4.0]),
        (8.0, [1.0, 2.0, 4.0, 8.0, 16.0]),
        (0.25, [0.125, 0.25, 0.5, 1.0, 2.0, 4.0]),
    ],
)
def test_search_continues_while_the_best_rate_is_at_an_edge(best, rates):
    assert tried(lambda rate: -abs(math.log(rate / best))) == (rates, best)


def test_search_ends_if_all_rates_tie_or_diverge():
    assert tried(lambda rate: 0.0) == ([1.0, 2.0, 4.0], 1.0)
    assert tried(lambda rate: -math.inf) == ([1.0, 2.0, 4.0], 1.0)


def test_search_names_a_best_rate_once_all_given_rates_ran():
    done = {1.0: 3.0, 2.0: 2.0}
    found = search(Trial, (1.0, 2.0, 4.0), lambda trial: done.get(trial.rate))
    assert (found.best, found.is_open) == (None, True)
    done[4.0] = 1.0
    found = search(Trial, (1.0, 2.0, 4.0), lambda trial: done.get(trial.rate))
    assert [trial.rate for trial in found.trials] == [0.5, 1.0, 2.0, 4.0]
    assert (found.best.rate, found.is_open) == (1.0, True)


def training(model, cell, rate):
    return Training("s", model, cell, rate, 10, 1, {}, ("valid", "test"))


GRID = Grid("width", ("a",), (1.0, 2.0, 4.0), (1, 2), training, {"a": ("sphere",)})


def line(rate, seed, right):
    one = training("sphere", "a", rate)
    name = one.name.replace("seed1", f"seed{seed}")
    exact = {"valid": {"all": right}, "test": {"all": right}}
    of_line = {"name": name, "model": "sphere", "rate": rate, "seed": seed, "updates": 10}
    return of_line | {
        "exact": exact,
        "commit": "0" * 40,
        "versions": {"torch": "2", "fairseq": "0"},
    }


def test_a_single_rate_is_only_tried():
    assert tried(lambda rate: 1.0, (2.0,)) == ([2.0], 2.0)


def test_grid_runs_all_seeds_of_promising_rates_and_compares_means():
    lines = [line(1.0, 1, 10.0), line(2.0, 1, 60.0), line(4.0, 1, 50.0)]
    wanted = [(1.0, 1), (2.0, 1), (4.0, 1), (2.0, 2)]
    assert [(one.rate, one.seed) for one in GRID.trainings(lines)] == wanted
    # one lucky seed chooses nothing: the mean is below another rate's first seed
    lines.append(line(2.0, 2, 20.0))
    assert GRID.choice(lines, "a", "sphere").is_open
    assert "| a | sphere | (2) |" in GRID.table(lines)
    lines.append(line(4.0, 2, 52.0))
    # by the mean the best rate is now at the edge
    assert [(one.rate, one.seed) for one in GRID.trainings(lines)][3] == (8.0, 1)
    assert "| a | sphere | (4) | 2 | 51.0 ± 1.4 |" in GRID.table(lines)
    lines.append(line(8.0, 1, 30.0))
    assert not GRID.choice(lines, "a", "sphere").is_open
    assert "| a | sphere | 4 | 2 | 51.0 ± 1.4 |" in GRID.table(lines)


def test_permutation_test_counts_all_splits_with_as_large_a_difference():
    some, others = [5.0, 6.0, 7.0, 9.0], [2.0, 3.0, 6.5]
    scores, gap = some + others, sum(some) / 4 - sum(others) / 3
    above = [
        sum(deal) / 4 - (sum(scores) - sum(deal)) / 3 >= gap - 1e-9
        for deal in itertools.combinations(scores, 4)
    ]
    assert seeds.permutation(some, others) == pytest.approx(2 * sum(above) / len(above))
    scores = {"a": some, "twin": others}
    assert seeds.against("twin", scores)[1] == pytest.approx([2 / 35])


def test_permutation_test_of_many_seeds_is_deterministic():
    some, others = [float(i % 7) for i in range(15)], [float(i % 5) for i in range(15)]
    first = seeds.permutation(some, others)
    assert 0 < first < 1
    assert [seeds.permutation(some, others) for _ in range(3)] == [first] * 3
    # 8 against 8 are 12,870 deals, all of which are counted
    assert seeds.permutation(range(8), range(8, 16)) == pytest.approx(2 / math.comb(16, 8))
    scores = {"a": some, "twin": others}
    assert seeds.against("twin", scores)[1] == pytest.approx([2e-5])


def test_sign_flip_test_counts_all_signs_with_as_large_a_mean():
    differences = [3.0, 1.0, -0.5, 2.0, 4.0]
    flips = itertools.product((1, -1), repeat=5)
    sums = [sum(s * d for s, d in zip(signs, differences, strict=True)) for signs in flips]
    expected = 2 * sum(one >= sum(differences) - 1e-9 for one in sums) / len(sums)
    assert seeds.sign_flips(differences) == pytest.approx(expected)


def test_holm_correction_scales_p_values_and_keeps_their_order():
    p = {"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.9}
    assert seeds.holm(p) == pytest.approx({"a": 0.04, "c": 0.09, "b": 0.09, "d": 0.9})
    least = 2 / math.comb(8, 4)
    found = seeds.against("twin", {"twin": [1.0, 2, 3, 4], "x": [5.0, 6, 7, 8], "y": [1.0]})
    assert found == (pytest.approx({"x": least}), pytest.approx([least]))
    assert seeds.against("twin", {"x": [5.0, 6, 7, 8]}) == ({}, [])
