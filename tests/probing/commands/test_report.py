"""The report of ``hyptrans probe run`` shows the contents of the run's files."""

import json
import shutil
from dataclasses import replace

import numpy as np
import torch

from probing.commands import run
from probing.commands.cli import main
from probing.probes.training import load_probes
from probing.states.file import States
from probing.text.trees import minimum_spanning_edges, read_conllu
from tests.probing.commands.runs import run_words, write_trees

LAYERS = 2, 1
"""Layers of distances and of depths."""


def test_pictures_show_the_layers_that_the_table_names(made, done, tmp_path, monkeypatch):
    pages, combine, render = [], run.over_seeds, run.render

    def at_layers(several):
        model, scores = combine(several)
        return replace(model, distance_layer=LAYERS[0], depth_layer=LAYERS[1]), scores

    monkeypatch.setattr(run, "over_seeds", at_layers)
    monkeypatch.setattr(run, "render", lambda page: pages.append(page) or render(page))
    shutil.copytree(done, tmp_path / "out")
    assert main(run_words(made, tmp_path / "out", models=["hybonet"])) == 0
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
