"""``hyptrans probe run`` with several seeds, ranks and control trees."""

import json
from itertools import pairwise

import pytest

from probing.commands.cli import main
from probing.commands.pipeline import Fit, score, scored
from probing.commands.sources import Source, Subject
from probing.probes.control import control_tree
from probing.probes.corpus import Corpus
from probing.probes.file import load_probes
from probing.probes.metrics import METRICS
from probing.probes.training import train
from probing.report.page import unbroken
from probing.settings import Settings
from probing.states.file import States
from probing.text.trees import read_conllu
from tests.probing.commands.runs import run_words


@pytest.fixture(scope="module")
def controlled(made, tmp_path_factory):
    """A finished run of one encoder with all controls."""
    out = tmp_path_factory.mktemp("controls")
    (out / "seen").write_text("the a dog cat sees\n", encoding="utf-8")
    words = ["--seeds", "2", "--control", "--ranks", "3", "2", "--seen", str(out / "seen")]
    assert main(run_words(made, out, *words, models=["hybonet"])) == 0
    return out


def test_seeds_are_averaged_and_their_spread_is_told(made, controlled, tmp_path):
    results = json.loads((controlled / "results.json").read_text())
    several = []
    for seed in ("1", "2"):
        out = tmp_path / seed
        assert main(run_words(made, out, "--no-random", "--seed", seed, models=["hybonet"])) == 0
        several.append(json.loads((out / "results.json").read_text())["models"][-1])
    (both,) = (model for model in results["models"] if model["name"] == "hybonet")
    for metric in METRICS:
        values = [model["test"][metric] for model in several]
        assert both["test"][metric] == pytest.approx(sum(values) / 2)
        assert both["spread"][metric] == pytest.approx(abs(values[0] - values[1]) / 2**0.5)
        layer = [model["layers"][1][metric] for model in several]
        assert both["layers"][1][metric] == pytest.approx(sum(layer) / 2)
    assert both["chosen"] == [[m["distance_layer"], m["depth_layer"]] for m in several]
    assert "|seed:1to2|" in results["signature"]
    value, deviation = (both[name]["uuas"] for name in ("test", "spread"))
    text = (controlled / "results.md").read_text()
    assert f"| hybonet | {value:.3f} \N{PLUS-MINUS SIGN} {deviation:.3f} |" in text
    (fresh,) = (m for m in results["models"] if m["name"] == "hybonet, random")
    assert set(fresh["spread"]) == set(METRICS)


def test_selectivity_is_of_probes_of_gold_and_of_control_trees(made, controlled):
    results = json.loads((controlled / "results.json").read_text())
    names = ["linear chain", "hybonet", "hybonet, random"]
    assert [model["name"] for model in results["models"]][2:] == names[1:]
    found = {(one["model"], one["dimensions"]): one for one in results["selectivities"]}
    assert list(found) == [(name, size) for name in names for size in (2, 3)]
    gold = {part: read_conllu(made / f"{part}.conllu") for part in ("train", "dev", "test")}
    control = {part: [control_tree(tree, 1) for tree in trees] for part, trees in gold.items()}
    for name, trees in (("real", gold), ("control", control)):
        # learned and chosen on these trees, and scored on them
        several = []
        for seed in (1, 2):
            sets = [
                Corpus(States(controlled / "hybonet-random" / f"{part}.states.npy"), t)
                for part, t in trees.items()
            ]
            settings = Settings(steps=6, evaluate_every=3, rank=4, batch_size=8, seed=seed)
            trained = train(*sets[:2], settings)
            several.append(score(trained, *sets[1:], name="x", punct="upos")[0].test["uuas"])
        assert found["hybonet, random", 3][name] == pytest.approx(several)
        (chain,) = found["linear chain", 2][name]
        words = [[w for w in range(len(t)) if t.upos[w] != "PUNCT"] for t in trees["test"]]
        counted = [
            sum(set(pair) <= set(kept) for pair in t.edges)
            for t, kept in zip(trees["test"], words, strict=True)
        ]
        near = [
            sum(pair in t.edges for pair in pairwise(kept))
            for t, kept in zip(trees["test"], words, strict=True)
        ]
        assert chain == pytest.approx(sum(near) / sum(counted))
    # those of gold trees are the points of the rank curves
    (point,) = (p for p in results["ranks"] if (p["probe"], p["dimensions"]) == ("lorentz", 3))
    real, control = (found["hybonet", 3][name] for name in ("real", "control"))
    assert point["test"]["uuas"] == pytest.approx(sum(real) / 2)
    cell = f"{sum(real) / 2:.3f} \N{MINUS SIGN} {sum(control) / 2:.3f} = "
    assert cell in (controlled / "results.md").read_text()
    assert unbroken(cell).rstrip("\N{NO-BREAK SPACE} ") in (controlled / "report.html").read_text()


def fit_of(out, kind, rank, seed):
    subject = Subject("hybonet", out / "hybonet", Source("a.pt"))
    return Fit(subject, Settings(probe=kind, rank=rank, seed=seed))


def test_ranks_are_those_of_all_geometries_on_all_layers(made, controlled, capsys):
    results = json.loads((controlled / "results.json").read_text())
    places = [(p["model"], p["probe"], p["dimensions"]) for p in results["ranks"]]
    kinds = ("lorentz", "poincare", "euclidean")
    assert places == [("hybonet", kind, rank) for kind in kinds for rank in (2, 3)]
    assert all(0 <= p["test"]["uuas"] <= 1 and p["spread"] for p in results["ranks"])
    (model,) = (m for m in results["models"] if m["name"] == "hybonet")
    for kind, rank in (("lorentz", 4), ("euclidean", 3)):
        probes = load_probes(fit_of(controlled, kind, rank, 1).probes)
        assert probes.settings.rank == rank
        assert len(probes.distance.spaces) == len(model["layers"])
        # its own best of them, not the one that the run's probes chose
        found = [scored(fit_of(controlled, kind, rank, seed))[0] for seed in (1, 2)]
        for result in found:
            best = max(layer["uuas"] for layer in result.layers)
            assert result.layers[result.distance_layer]["uuas"] == best
        (point,) = (p for p in results["ranks"] if (p["probe"], p["dimensions"]) == (kind, 3))
        mean = sum(result.test["uuas"] for result in found) / 2
        assert point["test"]["uuas"] == pytest.approx(mean)
    words = ["--seeds", "2", "--control", "--ranks", "3", "2", "--seen", str(controlled / "seen")]
    capsys.readouterr()
    assert main(run_words(made, controlled, *words, models=["hybonet"])) == 0
    # three sets of two encoders, the space of one; probes and figures of two seeds of two rows, of
    # six ranks, and of two ranks of both encoders on gold and on control trees
    made_before = 3 * 2 + 2 * 2 * (2 + 6 + 2 * 4) + 1
    assert capsys.readouterr().err.count("done by an earlier run") == made_before


def test_words_that_the_encoder_does_not_know_are_counted(made, controlled):
    shares = json.loads((controlled / "results.json").read_text())["vocabularies"]["hybonet"]
    sentences = read_conllu(made / "test.conllu")
    tokens = [token.form for s in sentences for token in s.tokens if token.form != "."]
    known = {"the", "a", "dog", "cat", "sees"}
    assert shares["unseen"] == pytest.approx(sum(t not in known for t in tokens) / len(tokens))
    states = States(controlled / "hybonet" / "test.states.npy").contents
    assert shares["split"] == pytest.approx(states.split / sum(states.lengths))
    assert 0 < shares["split"] < 1
    assert shares["unknown"] == 0
