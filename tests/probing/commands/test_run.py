"""``hyptrans probe run``: what it writes and shows, and what it does not repeat."""

import json
import re
import shutil
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from probing.commands import pipeline, run
from probing.commands.cli import main
from probing.commands.pipeline import score
from probing.commands.sources import Subject
from probing.probes.control import control_tree
from probing.probes.corpus import Corpus
from probing.probes.metrics import METRICS
from probing.probes.training import load_probes, train
from probing.report.page import unbroken
from probing.settings import Settings
from probing.states.file import States
from probing.text.trees import minimum_spanning_edges, read_conllu
from tests.probing.commands.runs import results_of, run_words, subjects, write_trees
from tests.probing.helpers import huggingface
from tests.probing.helpers.model import make_checkpoint
from tests.programs import MAIN, python


@pytest.fixture
def copy(done, tmp_path):
    """A copy of the finished run."""
    return shutil.copytree(done, tmp_path / "out")


@pytest.fixture
def reused(capsys):
    """Run a command and count the steps that an earlier run did."""

    def reused(words):
        capsys.readouterr()
        assert main(words) == 0
        return capsys.readouterr().err.count("done by an earlier run")

    return reused


def test_run_writes_figures_table_and_report(done):
    results = results_of(done)
    names = ["linear chain", "right-branching", "hybonet", "hybonet, random", "twin"]
    names.append("twin, random")
    assert list(results["probe"]) == [model["name"] for model in results["models"]] == names
    assert all(set(figures) == set(METRICS) for figures in results["probe"].values())
    assert results["probe"]["linear chain"]["root"] is None
    roles = ["baseline", "baseline", "encoder", "fresh", "encoder", "fresh"]
    assert [model["role"] for model in results["models"]] == roles
    assert [m["of"] for m in results["models"][2:]] == ["", "hybonet", "", "twin"]
    hybonet = results["models"][2]
    assert (hybonet["architecture"], hybonet["space"]) == ("hybonet_tiny", "lorentz, c = 1")
    assert len(hybonet["layers"]) == 3
    best = max(hybonet["layers"], key=lambda layer: layer["uuas"])
    assert hybonet["layers"][hybonet["distance_layer"]] == best
    text = (done / "results.md").read_text()
    for part in ("|steps:6|", "|punct:upos|", "|look:3|patience:5|"):
        assert part in results["signature"]
    assert f"Signature: `{results['signature']}`" in text
    assert f"| hybonet | {hybonet['test']['uuas']:.3f} |" in text
    assert "Scored on 15 of 15 sentences" in text
    assert set(results["training"]["twin"]["1"]) == {"distance", "depth"}
    assert list(results["comparisons"]) == [name for name in names if name != "hybonet"]
    (uuas,) = (c for c in results["comparisons"]["twin"] if c["metric"] == "uuas")
    values = [results["probe"][name]["uuas"] for name in ("hybonet", "twin")]
    assert uuas["difference"] == pytest.approx(values[0] - values[1])
    assert 0 < uuas["p"] <= 1
    spaces = results["spaces"]
    assert [len(use["layers"]) for use in spaces.values()] == [3, 3]
    assert spaces["twin"]["verdict"].endswith("flat vectors, a control.")
    assert f"hybonet: {spaces['hybonet']['verdict']}" in text
    page = (done / "report.html").read_text()
    assert spaces["hybonet"]["verdict"].replace(" %", "\xa0%") in page


def test_uuas_by_length_of_edges_adds_up_to_uuas(done):
    results, text = results_of(done), (done / "results.md").read_text()
    arcs = results["arcs"]
    assert list(arcs["uuas"]) == list(results["probe"])
    for name, shares in arcs["uuas"].items():
        found = [share * n for share, n in zip(shares, arcs["counts"], strict=True) if n]
        uuas = sum(found) / sum(arcs["counts"])
        assert uuas == pytest.approx(results["probe"][name]["uuas"])
    shares = [f"{share:.3f}" for share in arcs["uuas"]["linear chain"] if share is not None]
    assert shares[0] == "1.000"
    assert f"| linear chain | {' | '.join(shares)} |" in text.replace(" | \N{EN DASH} |", " |")


def test_probe_documentation_reads_uuas_by_layer(done, tmp_path, monkeypatch, capsys):
    page = (Path(__file__).parents[3] / "docs" / "probe.md").read_text(encoding="utf-8")
    (tmp_path / "probes").symlink_to(done)
    monkeypatch.chdir(tmp_path)
    (example,) = re.findall("```python\n(.*?)```", page, re.DOTALL)
    exec(example)
    layers = results_of(done)["models"][2]["layers"]
    assert f"\nhybonet {[round(layer['uuas'], 3) for layer in layers]}\n" in capsys.readouterr().out


def test_a_second_run_repeats_no_step_and_prints_the_same(made, done, reused, monkeypatch):
    monkeypatch.setattr(Subject, "load", lambda *given, **named: pytest.fail("loaded again"))
    figures = (done / "results.md").read_text()
    files = {p: p.stat().st_mtime_ns for p in done.rglob("*") if p.parent != done}
    # three sets of states, probes and figures, and the space of those trained
    assert reused(run_words(made, done)) == 4 * 5 + 2
    assert {p: p.stat().st_mtime_ns for p in done.rglob("*") if p.parent != done} == files
    assert (done / "results.md").read_text() == figures


def test_overwrite_repeats_every_step(made, done, copy, reused):
    assert reused(run_words(made, copy, "--no-random", "--overwrite", models=["twin"])) == 0
    assert results_of(copy)["probe"]["twin"] == results_of(done)["probe"]["twin"]


def test_a_stopped_run_resumes_at_its_unfinished_step(made, done, tmp_path, monkeypatch, reused):
    words, learn = run_words(made, tmp_path, "--no-random"), pipeline.train

    def stopped(*given, name, **named):
        return sys.exit("stopped") if name == "twin" else learn(*given, name=name, **named)

    with monkeypatch.context() as patched:
        patched.setattr(pipeline, "train", stopped)
        with pytest.raises(SystemExit):
            main(words)
    # states of both, and probes and figures of the first
    assert reused(words) == 2 * 3 + 2
    assert results_of(tmp_path)["probe"]["twin"] == results_of(done)["probe"]["twin"]


def test_changed_settings_retrain_probes_on_the_same_states(made, copy, reused):
    words = run_words(made, copy, "--lr", "0.01", models=["hybonet"])
    assert reused(words) == 2 * 3 + 1
    # a seed draws fresh parameters and nothing of trained encoders
    assert reused([*words, "--seed", "2"]) == 3


def test_a_changed_checkpoint_triggers_extraction(made, done, copy, tmp_path, reused):
    checkpoint = tmp_path / "hybonet" / "checkpoint_best.pt"
    checkpoint.parent.mkdir()
    make_checkpoint(checkpoint, made / "data", "hybonet_tiny", seed=8)
    words = [*run_words(made, copy, models=["twin"]), "--checkpoint", str(checkpoint)]
    # what the twin has, and nothing of the other
    assert reused(words) == 2 * 5 + 1
    found, before = results_of(copy)["probe"], results_of(done)["probe"]
    assert found["twin"] == before["twin"]
    assert found["hybonet"] != before["hybonet"]


@pytest.mark.parametrize("probe", ["poincare", "euclidean"])
def test_run_takes_other_probes_names_and_no_random_encoders(made, tmp_path, probe):
    words = ["--probe", probe, "--names", "Hybo Net", "--no-random"]
    assert main(run_words(made, tmp_path, *words, models=["hybonet"])) == 0
    results = results_of(tmp_path)
    assert list(results["probe"]) == ["linear chain", "right-branching", "Hybo Net"]
    assert results["models"][-1]["probe"] == probe
    assert (tmp_path / "Hybo-Net").is_dir()


def test_a_folder_called_model_is_named_after_the_one_above(tmp_path, monkeypatch):
    (tmp_path / "mine" / "model").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "mine")
    assert [subjects("--hf", name)[0].name for name in ("model", "../mine")] == ["mine", "mine"]


def test_a_hugging_face_encoder_runs_without_fairseq_and_beside_a_checkpoint(made, tmp_path):
    huggingface.save(tmp_path / "small")
    words = ["--hf", str(tmp_path / "small"), "--no-random"]
    command = run_words(made, tmp_path / "out", *words, models=[])
    python(MAIN, "probe", *command, without=["fairseq", "hydra", "omegaconf"])
    assert main(run_words(made, tmp_path / "out", *words, models=["hybonet"])) == 0
    models = results_of(tmp_path / "out")["models"][2:]
    assert [model["name"] for model in models] == ["hybonet", "small"]
    assert [model["architecture"] for model in models] == ["hybonet_tiny", "bert"]


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


LAYERS = 2, 1
"""Layers of distances and of depths."""


def test_pictures_show_the_layers_that_the_table_names(made, done, copy, monkeypatch):
    pages, combine, render = [], run.over_seeds, run.render

    def at_layers(several):
        model, scores = combine(several)
        return replace(model, distance_layer=LAYERS[0], depth_layer=LAYERS[1]), scores

    monkeypatch.setattr(run, "over_seeds", at_layers)
    monkeypatch.setattr(run, "render", lambda page: pages.append(page) or render(page))
    assert main(run_words(made, copy, models=["hybonet"])) == 0
    states = States(done / "hybonet" / "test.states.npy")
    probes = load_probes(done / "hybonet" / "lorentz-rank8-seed1.probes.pt")
    trees = read_conllu(made / "test.conllu")
    places = {(tree.words, tuple(sorted(tree.edges))): i for i, tree in enumerate(trees)}
    (page,) = pages
    assert len(page.examples) == 6
    for example in page.examples:
        own = states.sentence(places[tuple(example.words), tuple(sorted(example.gold_edges))])
        shown = example.predictions["hybonet"]
        with torch.no_grad():
            of_distances = own[[LAYERS[0]]][:, None], [LAYERS[0]]
            distances = probes.distance.distances(*of_distances)[0, 0]
            depths = probes.depth.depths(own[[LAYERS[1]]][:, None], [LAYERS[1]])[0, 0]
        words = [i for i, word in enumerate(example.words) if word != "."]
        keep = np.isin(range(len(example.words)), words)
        assert set(shown.edges) == minimum_spanning_edges(distances.numpy(), keep)
        assert shown.root == min(words, key=lambda i: depths[i].item())


def test_page_names_input_files_and_skipped_sentences(made, done, tmp_path, capsys):
    long = "".join(f"{i}\tthe\t_\tDET\t_\t_\t{i - 1}\t_\t_\t_\n" for i in range(1, 1200))
    write_trees(tmp_path / "test.conllu", 15, seed=2, extra=f"# sent_id = endless\n{long}\n")
    shutil.copytree(made / "hybonet", tmp_path / "elsewhere")
    shutil.copytree(done, tmp_path / "out")
    checkpoint = tmp_path / "elsewhere" / "checkpoint_best.pt"
    words = run_words(made, tmp_path / "out", "--no-random", "--names", "hybonet", models=[])
    words += ["--checkpoint", str(checkpoint)]
    words[words.index("--test") + 1] = str(tmp_path / "test.conllu")
    capsys.readouterr()
    assert main(words) == 0
    page, shown = (tmp_path / "out" / "report.html").read_text(), capsys.readouterr()
    assert "Scored on 15 of 16 sentences of the test set." in page
    assert "Scored on 15 of 16 sentences" in shown.out
    assert "test: 16 sentences to score on, " in page
    assert "train: 30 sentences to train probes on, " in page
    assert f"hybonet: hybonet_tiny, {checkpoint} (" in page
    assert str(made / "hybonet" / "checkpoint_best.pt") not in page
    left_out = json.loads((tmp_path / "out" / "results.json").read_text())["left_out"]
    assert [len(found) for found in left_out["hybonet"].values()] == [0, 0, 1]
    assert left_out["hybonet"]["test"][0]["id"] == "endless"
