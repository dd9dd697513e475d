"""What is said of an encoder's space from its states of words."""

import math
from collections import Counter

import pytest
import torch

from hyptrans.geometry import lorentz
from hyptrans.geometry.space import Space
from probing.geometry.layers import measure, verdict
from probing.geometry.words import word_counts, words_of
from probing.states.file import Contents, States, writing
from probing.text.trees import depths, read_conllu

LORENTZ = Space("lorentz", 1.0)


def line(number, word, head):
    return "\t".join([str(number), word, "_", "NOUN", "_", "_", str(head), "dep", "_", "_"])


@pytest.fixture
def trees(tmp_path):
    """Three sentences; the one in the middle has no states."""
    heads = [[2, 0, 2, 3], [0, 1], [0, 1, 2, 3, 4]]
    blocks = [
        "\n".join(line(i, f"W{i}", head) for i, head in enumerate(one, 1)) + "\n\n" for one in heads
    ]
    path = tmp_path / "trees.conllu"
    path.write_text("".join(blocks))
    return read_conllu(path)


def states(path, trees, vectors):
    """Two layers of points above tangent vectors, the second at one radius."""
    kept = [0, 2]
    contents = Contents(
        architecture="a",
        identity="x",
        spaces=[LORENTZ, LORENTZ],
        kept=kept,
        lengths=[len(trees[i]) for i in kept],
        left_out=[],
    )
    with writing(path, contents, 4) as writer:
        for place, i in enumerate(kept):
            own = vectors[i]
            level = 2 * own / own.norm(dim=-1, keepdim=True)
            layers = [lorentz.exp_origin(one).float() for one in (own, level)]
            writer.write(place, torch.stack(layers, 1))
    return States(path)


class Reader:
    """Of an encoder, how it cuts text: at spaces, and chosen words in two."""

    max_tokens = 100

    def __init__(self, *cut):
        self.cut = cut

    def tokenize(self, text):
        found, start = [], 0
        for word in text.split(" "):
            ends = [1, len(word)] if word in self.cut else [len(word)]
            for before, end in zip([0, *ends], ends, strict=False):
                found.append((9, (start + before, start + end)))
            start += len(word) + 1
        return found


def test_a_radius_that_is_the_depth_goes_with_it(trees, tmp_path, rng):
    vectors = {}
    for i in (0, 2):
        directions = torch.randn(len(trees[i]), 3, generator=rng, dtype=torch.float64)
        directions /= directions.norm(dim=-1, keepdim=True)
        vectors[i] = directions * (1 + depths(trees[i]))[:, None]
    # rare words are far out too: words of the second sentence stand as often as they are deep
    counts = Counter({"w1": 9, "w2": 7, "w3": 5, "w4": 3, "w5": 1})
    words = words_of(states(tmp_path / "s.npy", trees, vectors), trees, Reader(), counts)
    free, level = measure(words)
    # rounding parts words of one depth
    assert free.with_depth > 0.95
    assert free.with_frequency < -0.5 < 0.5 < free.with_position
    radii = torch.cat([vectors[i].norm(dim=-1) for i in (0, 2)])
    assert (free.radius, free.spread) == pytest.approx((float(radii.mean()), float(radii.std())))
    assert level.radius == pytest.approx(2, rel=1e-5)
    assert math.isnan(level.with_depth)
    assert "uses the curvature in " in verdict([free, level])


def test_words_of_several_tokens_are_left_out(trees, tmp_path, rng):
    vectors = {i: torch.randn(len(trees[i]), 3, generator=rng) for i in (0, 2)}
    stored = states(tmp_path / "s.npy", trees, vectors)
    counts = Counter({"w1": 9, "w2": 7, "w3": 5, "w4": 3, "w5": 1})
    found = words_of(stored, trees, Reader("W2", "W5"), counts)
    assert found.frequency.tolist() == [9, 5, 3, 9, 5, 3]
    assert found.position.tolist() == [0, 2, 3, 0, 2, 3]
    assert found.depth.tolist() == [1, 1, 2, 0, 2, 3]
    both = [stored.sentence(0)[:, [0, 2, 3]], stored.sentence(1)[:, [0, 2, 3]]]
    assert torch.equal(found.states, torch.cat(both, 1))
    assert words_of(stored, trees, Reader("W2"), counts, 1).frequency.tolist() == [9, 5, 3]
    assert (
        len(words_of(stored, trees, Reader(*(f"W{i}" for i in range(1, 6))), counts).position) == 0
    )


def test_words_are_counted_whatever_their_case(trees):
    assert word_counts(trees)["w2"] == 3
