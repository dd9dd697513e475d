"""The recipe of probes: sentences to parse, its tables, and what is missing."""

import pytest

from hyptrans.support.errors import UserError
from recipes.probing import tables
from recipes.probing.__main__ import draw


def texts(folder, ranges):
    for name, numbers in ranges.items():
        (folder / name).write_text("".join(f"line {i}\n\n" for i in range(*numbers)))
    return {name: folder / name for name in ranges}


def test_sentences_are_distinct_across_all_sets(tmp_path):
    several = texts(tmp_path, {"train": (0, 40), "dev": (30, 42), "test": (38, 60)})
    counts = {"dev": 10, "test": 10, "train": 20}
    sets = draw(several, counts, 1)
    found = {name: {int(line[5:]) for line in lines} for name, lines in sets.items()}
    sizes = {name: len(numbers) for name, numbers in found.items()}
    assert sizes == {"train": 20, "dev": 10, "test": 10}
    assert all(30 <= i < 42 for i in found["dev"])
    # of two texts that a sentence stands in, the first has it
    assert all(42 <= i < 60 for i in found["test"])
    assert all(i < 30 for i in found["train"])
    assert draw(several, counts, 1) == sets
    with pytest.raises(UserError, match="dev has 12 distinct sentences, 13 are needed"):
        draw(several, {"dev": 13}, 1)


def test_summary_omits_only_single_layers():
    found = tables.summary(
        {
            "models": [{"name": "h", "test": {"uuas": 0.5}, "layers": [{"uuas": 0.5}]}],
            "signature": "probe:x",
            "spaces": {"h": {"verdict": "It does not.", "layers": [1]}},
        }
    )
    assert found["curvature"] == {"h": "It does not."}
    assert found["models"] == [{"name": "h", "test": {"uuas": 0.5}, "layers": []}]
    assert found["signature"] == "probe:x"
