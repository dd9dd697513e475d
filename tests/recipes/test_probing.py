"""The recipe's steps on small files, its table, and a whole run of tiny checkpoints."""

import gzip
import json
import os
from functools import partial

import pytest

from hyptrans.support.errors import UserError
from probing.text.trees import read_conllu
from recipes.common.translation import Run
from recipes.probing import parser as parsers
from recipes.probing import sentences, tables, treebank
from recipes.probing.parser import Parser, accuracy
from tests.probing.helpers.model import real_trees
from tests.recipes.scripts import ROOT, run_script

TREES = """\
# newdoc id = a
# sent_id = 1
# text = I can't go.
1\tI\t_\tPRON\t_\t_\t4\tnsubj\t_\t_
2-3\tcan't\t_\t_\t_\t_\t_\t_\t_\t_
2\tca\t_\tAUX\t_\t_\t4\taux\t_\t_
3\tn't\t_\tPART\t_\t_\t4\tadvmod:neg\t_\t_
4\tgo\t_\tVERB\t_\t_\t0\troot\t_\tSpaceAfter=No
5\t.\t_\tPUNCT\t_\t_\t4\tpunct\t_\t_

# sent_id = 2
# text = Go!
1\tGo\t_\tVERB\t_\t_\t0\troot\t_\tSpaceAfter=No
1.1\tyou\t_\tPRON\t_\t_\t_\t_\t_\t_
2\t!\t_\tPUNCT\t_\t_\t1\tpunct\t_\t_

# newpar id = b
# sent_id = 3
# text = 10 000 dogs
1\t10 000\t_\tNUM\t_\t_\t2\tnummod\t_\t_
2\tdogs\t_\tNOUN\t_\t_\t0\troot\t_\t_

"""


@pytest.fixture
def trees(tmp_path):
    path = tmp_path / "trees.conllu.gz"
    path.write_bytes(gzip.compress(TREES.encode()))
    return path


def test_files_for_stanzas_trainers_keep_trees_and_text(trees, tmp_path):
    folder = tmp_path / "treebank"
    treebank.write(dict.fromkeys(("train", "dev", "test"), trees), folder)
    text = (folder / "train.txt").read_text()
    assert text == "I can't go. Go!\n\n10 000 dogs\n"
    found, wanted = read_conllu(folder / "train.conllu"), read_conllu(trees)
    assert [(s.words, s.heads) for s in found] == [(s.words, s.heads) for s in wanted]
    assert "you" not in (folder / "train.conllu").read_text()
    # a digit for each character of the text: ends of tokens, words and sentences
    labels = (folder / "dev.labels").read_text()
    assert len(labels.replace("\n", "")) == len(text.replace("\n", ""))
    words = (folder / "test.words").read_text().splitlines()
    assert words == ["I ca n't go .", "Go !", "10_000 dogs"]


def test_accuracy_counts_heads_and_relations_without_subtypes(trees, tmp_path):
    treebank.write(dict.fromkeys(("train", "dev", "test"), trees), tmp_path)
    gold = tmp_path / "test.conllu"
    text = gold.read_text()
    assert "2-3" not in text
    changed = text.replace("4\tadvmod:neg", "4\tadvmod").replace("4\tnsubj", "4\tobj")
    changed = changed.replace("1\tpunct", "0\tpunct").replace(
        "0\troot\t_\tSpaceAfter=No\n2\t!", "2\troot\t_\t_\n2\t!"
    )
    changed = changed.replace("1\tGo\t_\tVERB", "1\tGo\t_\tNOUN")
    parsed = tmp_path / "parsed.conllu"
    parsed.write_text(changed)
    found = accuracy(gold, parsed)
    assert (found["words"], found["sentences"]) == (9, 3)
    assert found["upos"] == pytest.approx(8 / 9)
    # both words of "Go !" hang the other way round, and a subject is called an object
    assert found["uas"] == pytest.approx(7 / 9)
    assert found["las"] == pytest.approx(6 / 9)
    parsed.write_text(text.replace("dogs", "cats"))
    with pytest.raises(UserError, match=r"parsed\.conllu has other words"):
        accuracy(gold, parsed)


def test_sentences_of_held_out_texts_are_kept_apart(tmp_path):
    texts = {"train": (0, 40), "valid": (30, 42), "test": (38, 60)}
    for name, numbers in texts.items():
        (tmp_path / name).write_text("".join(f"line {i}\n" for i in range(*numbers)))
    draw = partial(sentences.draw, tmp_path / "train", [tmp_path / "valid", tmp_path / "test"])
    sets = draw(sentences=40, held_out=10, seed=1)
    found = {name: {int(line[5:]) for line in lines} for name, lines in sets.items()}
    assert {name: len(numbers) for name, numbers in found.items()} == {
        "train": 20,
        "dev": 10,
        "test": 10,
    }
    assert all(30 <= i < 42 for i in found["dev"])
    # of two texts that a sentence stands in, the first has it
    assert all(42 <= i < 60 for i in found["test"])
    assert all(i < 30 for i in found["train"])
    with pytest.raises(UserError, match="valid has 12 distinct sentences and the options want 13"):
        draw(sentences=40, held_out=13, seed=1)


def model(name, role, uuas, spread=None, chosen=()):
    test = {"uuas": uuas, "dspr": 0.25, "root": None, "nspr": 0.5}
    return {
        "name": name,
        "role": role,
        "test": test,
        "spread": dict.fromkeys(test, spread) if spread else {},
        "chosen": [list(pair) for pair in chosen],
        "layers": [],
        **dict.fromkeys(("architecture", "space", "probe", "of"), ""),
        **dict.fromkeys(("distance_layer", "depth_layer"), 0),
    }


def probes(name):
    models = [
        model("linear chain", "baseline", 0.43),
        model(name, "encoder", 0.5, 0.01, [(3, 4), (2, 4)]),
    ]
    values = [("lorentz", 2, 0.3), ("lorentz", 4, 0.4)]
    values += [("euclidean", 2, 0.2), ("euclidean", 4, 0.35)]
    points = [
        {"model": name, "probe": probe, "dimensions": number, "test": {"uuas": uuas}, "spread": {}}
        for probe, number, uuas in values
    ]
    return {
        "models": models,
        "signature": "probe:x",
        "seeds": 2,
        "notes": ["Scored on 3 of 3 sentences of the test set."],
        "settings": {},
        "comparisons": {"linear chain": [{"metric": "uuas", "difference": 0.07, "p": 0.0001}]},
        "vocabularies": {name: {"unseen": 0.125, "unknown": 0.0, "split": 0.5}},
        "ranks": points,
        "selectivities": [
            {"model": name, "dimensions": 8, "real": [0.5, 0.6], "control": [0.7, 0.9]}
        ],
        "arcs": {"lengths": [1, 2, 4], "counts": [6, 0, 2], "uuas": {name: [0.5, None, 0.125]}},
        "curvature": {name: "It does not use the curvature."},
    }


def test_summary_has_the_seconds_of_all_stages_and_no_single_layers():
    of_run = probes("h") | {"spaces": {"h": {"verdict": "It does not.", "layers": [1]}}}
    of_run["models"][1]["layers"] = [{"uuas": 0.5}]
    of_run["seconds"] = {"h": {"extract": 1.5, "train": 2.25}, "twin": {"train": 3.0}}
    found = tables.summary(of_run)
    assert found["seconds"] == 6.8
    assert found["curvature"] == {"h": "It does not."}
    assert [model["layers"] for model in found["models"]] == [[], []]


def test_table_has_every_figure_with_spread_p_value_and_rank():
    found = {"probes": {"gold": probes("h")}, "bleu": {"h": 31.44}, "updates": 4000}
    text = tables.table(found)
    lines = text.splitlines()
    assert "| linear chain | 0.430 | 0.250 | - | 0.500 |  |" in lines
    own = "| h | 0.500 + 0.010 | 0.250 + 0.010 | - | 0.500 + 0.010 | 2..3 / 4 |"
    assert own.replace("+", "\u00b1").replace("..", "\u2013") in lines
    assert "| linear chain | +0.070 (p < 0.001) | - | - | - |" in lines
    assert "| h | 12.5 % | 0.0 % | 50.0 % |" in lines
    assert "| h, lorentz | 0.300 | 0.400 |" in lines
    assert "| h, euclidean | 0.200 | 0.350 |" in lines
    start = lines.index("| UUAS by words from end to end of an edge | 1 | 2\u20133 | 4 or more |")
    wanted = ["| share of the edges | 75.0 % | 0.0 % | 25.0 % |", "| h | 0.500 | - | 0.125 |"]
    assert lines[start + 2 : start + 4] == wanted
    assert "| h | 0.550 - 0.800 = -0.250 + 0.071 |".translate({45: 8722, 43: 177}) in lines
    assert "BLEU of their translations of the Tatoeba test set: h 31.4" in text
    assert "over 2 probe seeds" in text
    assert "h: It does not use the curvature." in lines


def test_parses_stand_beside_the_papers_figures():
    found = {
        "probes": {name: probes("h") for name in ("gold", "parsed", "paper")},
        "parser": {"las": 0.8123, "uas": 0.85, "upos": 0.93},
    }
    lines = tables.table(found).splitlines()
    assert "| HyboNet, as Chen et al. print it | 0.59 | 0.70 | 0.64 | 0.92 |  |" in lines
    for settings in ("our settings", "the paper's rate and steps"):
        assert any(line.startswith(f"| h, {settings} | 0.500") for line in lines)
    assert any("LAS 81.2, UAS 85.0, UPOS 93.0" in line for line in lines)
    # what needs no encoder depends on no settings either
    assert [line for line in lines if line.startswith("| linear chain")].count(
        "| linear chain | 0.430 | 0.250 | - | 0.500 |  |"
    ) == 2
    assert not [line for line in lines if line.startswith("| linear chain, ")]
    # the parses are of the training text, of which no word is new
    assert sum(line.startswith("| words of the test set |") for line in lines) == 1
    assert any("training text, those of the test set too" in line for line in lines)
    lines = tables.table(found | {"held_out": True}).splitlines()
    assert sum(line.startswith("| words of the test set |") for line in lines) == 2
    assert any("test text, which no encoder has seen" in line for line in lines)


@pytest.mark.slow
def test_a_parser_is_trained_scored_and_not_trained_twice(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    small = "--no_pretrain --hidden_dim 32 --num_layers 1 --char_hidden_dim 16 --char_emb_dim 16"
    monkeypatch.setattr(parsers, "NETWORK", small.split())
    monkeypatch.setattr(parsers, "LOOKS", 2)
    trees = {}
    for part, count in {"train": 60, "dev": 15, "test": 15}.items():
        text = gzip.decompress((real_trees() / f"en_ewt-ud-{part}.conllu.gz").read_bytes()).decode()
        trees[part] = tmp_path / f"{part}.conllu"
        trees[part].write_text("\n\n".join(text.split("\n\n")[:count]) + "\n\n", encoding="utf-8")
    run = Run(tmp_path, "en", "de", seed=1, updates=1, threads=1)
    text, out = tmp_path / "text", tmp_path / "parsed.conllu"
    text.write_text("The dog doesn't bark.\nA cat sees it. It runs.\n")

    def make():
        parser = Parser(run, steps=6)
        found = parser.train(trees)
        parser.parse("parse", text, out)
        return found

    found = make()
    assert found["sentences"] == 15
    assert 0 < found["las"] <= found["uas"] < 1
    assert [tree.id for tree in read_conllu(out)] == ["1", "2"]
    listed = json.loads((tmp_path / "stanza" / "models" / "resources.json").read_text())
    assert listed["en"]["packages"]["default"] == dict.fromkeys(treebank.PROCESSORS, "ewt")
    capsys.readouterr()
    assert make() == found
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "--data is needed: a folder with tatoeba_en_de/deu-eng.zip"),
        (["--data", "none"], "--data: none/ud_english_ewt/en_ewt-ud-train.conllu.gz is missing"),
        (
            ["--parsed", "--sentences", "20", "--held-out", "10"],
            "--sentences 20 leaves nothing to train on beside two times --held-out 10",
        ),
    ],
)
def test_what_is_missing_is_named_before_any_work(tmp_path, words, message):
    environment = {key: value for key, value in os.environ.items() if key != "HYPTRANS_DATA"}
    done = run_script("probing", *words, "--out", str(tmp_path / "out"), env=environment)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(f"error: {message}")
    assert not (tmp_path / "out").exists()
