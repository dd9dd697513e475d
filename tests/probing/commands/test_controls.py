"""``hyptrans probe run`` with several seeds and control trees."""

from itertools import pairwise

import pytest

from probing.commands.cli import main
from probing.commands.pipeline import score
from probing.probes.control import control_tree
from probing.probes.corpus import Corpus
from probing.probes.metrics import METRICS
from probing.probes.training import train
from probing.report.page import unbroken
from probing.settings import Settings
from probing.states.file import States
from probing.text.trees import read_conllu
from tests.probing.commands.runs import results_of, run_words


@pytest.fixture(scope="module")
def controlled(made, tmp_path_factory):
    """A finished run of one encoder with all controls."""
    out = tmp_path_factory.mktemp("controls")
    assert main(run_words(made, out, "--seeds", "2", "--control", models=["hybonet"])) == 0
    return out


def test_results_give_mean_and_deviation_over_seeds(made, controlled, tmp_path):
    results = results_of(controlled)
    several = []
    for seed in ("1", "2"):
        out = tmp_path / seed
        assert main(run_words(made, out, "--no-random", "--seed", seed, models=["hybonet"])) == 0
        several.append(results_of(out)["models"][-1])
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


def test_selectivity_compares_gold_with_control_trees(made, controlled):
    results = results_of(controlled)
    names = ["linear chain", "hybonet", "hybonet, random"]
    assert [model["name"] for model in results["models"]][2:] == names[1:]
    found = {one["model"]: one for one in results["selectivities"]}
    assert list(found) == names
    # learned and chosen on control trees, and scored on them
    gold = {part: read_conllu(made / f"{part}.conllu") for part in ("train", "dev", "test")}
    control = {part: [control_tree(tree, 1) for tree in trees] for part, trees in gold.items()}
    folder = controlled / "hybonet-random"
    sets = [Corpus(States(folder / f"{part}.states.npy"), t) for part, t in control.items()]
    trained = train(*sets[:2], Settings(steps=6, evaluate_every=3, rank=8, batch_size=8, seed=2))
    result, _ = score(trained, *sets[1:], name="x", punct="upos")
    assert found["hybonet, random"]["control"][1] == pytest.approx(result.test["uuas"])
    for name, trees in (("real", gold["test"]), ("control", control["test"])):
        kept = [[w for w in range(len(t)) if t.upos[w] != "PUNCT"] for t in trees]
        pairs = list(zip(trees, kept, strict=True))
        edges = sum(set(edge) <= set(words) for t, words in pairs for edge in t.edges)
        near = sum(pair in t.edges for t, words in pairs for pair in pairwise(words))
        assert found["linear chain"][name] == [pytest.approx(near / edges)]
    # the run's own probes are those of the gold trees
    real, control = (found["hybonet"][name] for name in ("real", "control"))
    assert results["probe"]["hybonet"]["uuas"] == pytest.approx(sum(real) / 2)
    cell = f"{sum(real) / 2:.3f} \N{MINUS SIGN} {sum(control) / 2:.3f} = "
    assert cell in (controlled / "results.md").read_text()
    assert unbroken(cell).rstrip("\N{NO-BREAK SPACE} ") in (controlled / "report.html").read_text()
