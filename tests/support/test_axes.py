"""Axes of charts, and where numbers lie along them."""

import itertools

import pytest

from hyptrans.support import axes, svg


@pytest.mark.parametrize(
    ("low", "high"), [(0.31, 0.68), (0.0, 1.0), (5.0, 71.4), (0.5, 0.5), (-0.1, 0.93), (0.0, 1e-6)]
)
def test_ticks_cover_the_range_with_few_round_numbers(low, high):
    found = axes.ticks(low, high)
    assert found[0] <= low + 1e-12
    assert found[-1] >= high - 1e-12
    assert 2 <= len(found) <= 8
    steps = [b - a for a, b in itertools.pairwise(found)]
    assert max(steps) == pytest.approx(min(steps))


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


@pytest.mark.parametrize("last", [0, 5, 12, 13, 100])
def test_places_are_whole_numbers_from_0_and_not_too_many(last):
    axis = axes.places(last)
    assert axis.ticks[0] == 0
    assert axis.ticks[-1] <= last
    assert 1 <= len(axis.ticks) <= axes.MOST_PLACES
    assert axis.names == [str(place) for place in axis.ticks]
    assert axis.share(last) == (1 if last else 0.5)


def test_places_may_have_names_of_their_own():
    assert axes.places(2, ["two", "four", "eight"]).names == ["two", "four", "eight"]


def test_equal_ratios_are_equally_long_on_a_logarithmic_axis():
    axis = axes.Axis(2.0, 32.0, [4.0], ["4"], logarithmic=True)
    assert [axis.share(2.0 * 2**k) for k in range(5)] == pytest.approx([0, 0.25, 0.5, 0.75, 1])


@pytest.mark.parametrize("wanted", [0.013, 0.02, 0.9, 1.0, 3.3, 70.0])
def test_steps_are_1_2_or_5_times_a_power_of_ten(wanted):
    step = axes.round_step(wanted)
    assert wanted <= step * (1 + 1e-9)
    assert step < 2.5 * wanted * (1 + 1e-9)
    assert f"{step:e}"[0] in "125"


def test_a_frame_draws_a_line_and_a_number_for_each_tick():
    frame = axes.Frame(10, 110, 5, 55, axes.places(4), axes.along([-1.0, 0.0, 1.0]))
    picture = svg.figure(120, 100, "a chart", "chart")
    frame.draw(picture, "number")
    lines = [path.get("d") for path in picture.iter("path")]
    assert lines == ["M10 55H110", "M10 30H110", "M10 5H110"]
    texts = [text.text for text in picture.iter("text")]
    assert texts == ["\u22121", "0", "1", "0", "1", "2", "3", "4", "number"]
    assert not frame.cut
    assert axes.Frame(0, 1, 0, 1, frame.across, axes.along([2.0, 3.0])).cut
