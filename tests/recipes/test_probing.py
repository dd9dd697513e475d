"""The recipe of probes: sentences to parse, its tables, and what is missing."""

from functools import partial

import pytest

from hyptrans.support.errors import UserError
from recipes.probing import sentences, tables


def texts(folder, ranges):
    for name, numbers in ranges.items():
        (folder / name).write_text("".join(f"line {i}\n\n" for i in range(*numbers)))
    return {name: folder / name for name in ranges}


def test_sentences_are_distinct_across_all_sets(tmp_path):
    several = texts(tmp_path, {"train": (0, 40), "dev": (30, 42), "test": (38, 60)})
    draw = partial(sentences.draw, several)
    sets = draw(sentences=40, held_out=10, seed=1)
    found = {name: {int(line[5:]) for line in lines} for name, lines in sets.items()}
    sizes = {name: len(numbers) for name, numbers in found.items()}
    assert sizes == {"train": 20, "dev": 10, "test": 10}
    assert all(30 <= i < 42 for i in found["dev"])
    # of two texts that a sentence stands in, the first has it
    assert all(42 <= i < 60 for i in found["test"])
    assert all(i < 30 for i in found["train"])
    assert draw(sentences=40, held_out=10, seed=1) == sets
    with pytest.raises(UserError, match="dev has 12 distinct sentences, but the options need 13"):
        draw(sentences=40, held_out=13, seed=1)
    with pytest.raises(UserError, match="--sentences 20 leaves nothing to train on beside two"):
        draw(sentences=20, held_out=10, seed=1)


def model(name, role, uuas, spread=None):
    test = {"uuas": uuas, "dspr": 0.25, "root": None, "nspr": 0.5}
    spread = {key: spread for key, value in test.items() if value} if spread else {}
    return {"name": name, "role": role, "test": test, "spread": spread, "layers": [{"uuas": 0.5}]}


def probes():
    models = [model("linear chain", "baseline", 0.43), model("h_1", "encoder", 0.5, 0.01)]
    return {
        "models": models,
        "signature": "probe:x",
        "seeds": 2,
        "notes": ["Scored on 3 of 3 sentences of the test set."],
        "curvature": {"h_1": "It does not use the curvature."},
    }


def test_summary_omits_only_single_layers():
    of_run = probes() | {"spaces": {"h_1": {"verdict": "It does not.", "layers": [1]}}}
    found = tables.summary(of_run)
    assert found["curvature"] == {"h_1": "It does not."}
    assert [model["layers"] for model in found["models"]] == [[], []]
    assert found["signature"] == "probe:x"


def test_table_shows_every_figure_with_its_spread_and_the_papers_figures():
    gold = {"probes": {"gold": probes()}, "bleu": {"h": 31.44}, "updates": 4000}
    shown = tables.table(gold)
    assert "| linear chain | 0.430 | 0.250 | - | 0.500 |" in shown
    assert "| h_1 | 0.500 ± 0.010 | 0.250 ± 0.010 | - | 0.500 ± 0.010 |" in shown
    assert "over 2 probe seeds of one encoder each. h_1: It does not use the curvature." in shown
    assert shown.endswith("Encoders: 4,000 updates; BLEU: h 31.4.")
    found = {"probes": {name: probes() for name in ("gold", "parsed", "paper")}}
    found["parser"] = {"las": 0.8123, "uas": 0.85, "upos": 0.93}
    lines = tables.table(found).splitlines()
    assert "| HyboNet, as Chen et al. print it | 0.59 | 0.70 | 0.64 | 0.92 |" in lines
    for settings in ("our settings", "the paper's rate and steps"):
        assert any(line.startswith(f"| h_1, {settings} | 0.500") for line in lines)
    assert any("LAS 81.2, UAS 85.0, UPOS 93.0" in line for line in lines)
    # what needs no encoder depends on no settings either
    assert sum(line.startswith("| linear chain | ") for line in lines) == 2
    assert any("training text, those of the test set too" in line for line in lines)
    assert "which no encoder has seen" in tables.table(found | {"held_out": True})
