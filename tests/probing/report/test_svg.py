"""Names that keep apart."""

import itertools

from probing.report import svg


def test_spread_keeps_the_order_and_the_gap():
    wanted = [50.0, 10.0, 52.0, 51.0, 98.0]
    found = svg.spread(wanted, 10, 0, 100)
    order = sorted(range(5), key=lambda i: wanted[i])
    placed = [found[i] for i in order]
    assert all(b - a >= 10 - 1e-9 for a, b in itertools.pairwise(placed))
    assert min(placed) >= 0
    assert max(placed) <= 100
    crowded = sorted(svg.spread([5.0] * 30, 10, 0, 100))
    assert crowded[0] >= -1e-9
    assert crowded[-1] <= 100 + 1e-9
