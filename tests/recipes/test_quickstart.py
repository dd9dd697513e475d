"""Recipes of a corpus: from a command to a table, and what is missing is named before any work."""

import importlib
import json
import os
import re
import sys

import pytest
from sacrebleu.metrics import BLEU, CHRF

from hyptrans.support.errors import UserError, run_command
from recipes.multi30k_en_de.__main__ import main as multi30k
from recipes.quickstart.__main__ import main
from tests.recipes.scripts import run_script

MODEL = "euclidean_prenorm_tiny"
SMALL = ("--updates", "30", "--sentences", "400", "--vocab-size", "350", "--probe-steps", "30")


def quickstart(out, *options):
    return run_script("quickstart", "--out", str(out), *options)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("quickstart")
    run = quickstart(out, "--archs", MODEL, *SMALL)
    assert run.returncode == 0, run.stderr + run.stdout
    lines = (out / "results.jsonl").read_text(encoding="utf-8").splitlines()
    return out, run.stdout, {line["name"]: line for line in map(json.loads, lines)}


@pytest.mark.slow
def test_quickstart_ends_with_scores_trees_and_their_table(finished):
    out, shown, lines = finished
    scores, probed = lines[f"{MODEL}-30-seed1"], lines["probe"]
    assert scores["bleu_signature"].startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|")
    row = next(line for line in shown.splitlines() if line.startswith(f"| {MODEL} |"))
    assert f"| {scores['bleu']:.1f} | {scores['chrf']:.1f} |" in row
    assert probed["probe"].keys() >= {"linear chain", MODEL, f"{MODEL}, random"}
    assert 0 < probed["probe"][MODEL]["uuas"] < 1
    assert "<svg" in (out / "report.html").read_text(encoding="utf-8")
    assert str(out / "report.html") in shown
    printed = (out / f"{MODEL}_beam4" / "generate-test.txt").read_text(encoding="utf-8")
    theirs = float(re.search(r"Generate test with beam=4: BLEU = ([\d.]+) ", printed)[1])
    assert scores["bleu"] == pytest.approx(theirs, abs=0.006)
    assert re.search(rf"\] train_{MODEL}: update 30, valid perplexity [\d.]+\n", shown)


@pytest.mark.slow
def test_a_second_run_repeats_nothing_and_refuses_other_settings(finished):
    out, _, lines = finished
    run = quickstart(out, "--archs", MODEL, *SMALL)
    assert run.returncode == 0, run.stderr
    assert "fairseq-train" not in run.stdout
    again = (out / "results.jsonl").read_text(encoding="utf-8").splitlines()
    assert {line["name"]: line for line in map(json.loads, again)} == lines
    run = quickstart(out, "--archs", MODEL, *SMALL, "--vocab-size", "300")
    said = f"{out / MODEL} holds a training by another command or of other data"
    assert run.returncode == 2
    assert said in run.stderr
    run = quickstart(out, "--archs", MODEL, *SMALL, "--seed", "2")
    assert run.returncode == 2
    assert said in run.stderr


@pytest.mark.slow
def test_quickstart_runs_without_fairseq(tmp_path):
    (tmp_path / "fairseq.py").write_text("raise ModuleNotFoundError(name='fairseq')")
    out, own = tmp_path / "out", ["--trainer", "hyptrans", "--archs", MODEL, *SMALL]
    without = {**os.environ, "PYTHONPATH": str(tmp_path), "CC": "/nowhere", "CXX": "/nowhere"}
    run = run_script("quickstart", "--out", str(out), *own, env=without)
    assert run.returncode == 0, run.stderr + run.stdout
    translated = (out / "hyptrans" / MODEL / "test.qtv").read_text(encoding="utf-8").splitlines()
    references = (out / "toy" / "test.qtv").read_text(encoding="utf-8").splitlines()
    bleu, chrf = (metric().corpus_score(translated, [references]).score for metric in (BLEU, CHRF))
    assert f"| {MODEL} | 30 | 1 | {bleu:.1f} | {chrf:.1f} |" in run.stdout
    assert f"| {MODEL}, random |" in run.stdout
    assert "<svg" in (out / "hyptrans" / "report.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_both_models_learn_the_toy_language(tmp_path):
    run = quickstart(tmp_path)
    assert run.returncode == 0, run.stderr
    lines = map(json.loads, (tmp_path / "results.jsonl").read_text().splitlines())
    bleu = {line["model"]: line["bleu"] for line in lines if "bleu" in line}
    assert min(bleu.values()) > 60
    assert bleu.keys() == {"hybonet_plus_tiny", MODEL}


def test_error_names_a_missing_extra_before_any_work(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "conllu", None)
    monkeypatch.setattr(sys, "argv", ["run.py", "--out", str(tmp_path / "out")])
    assert run_command(main) == 2
    error = "error: conllu is missing: pip install 'hyptrans[probing]'\n"
    assert tuple(capsys.readouterr()) == ("", error)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("recipe", "words", "message"),
    [
        ("multi30k_en_de", [], "--data is needed: a folder with Multi30k task 1"),
        (
            "multi30k_en_de",
            ["--data", "there", "--archs", "nothing"],
            "--data: there/train.de and train.de.gz are both missing",
        ),
        ("quickstart", ["--archs", "nothing_tiny"], "--archs: no settings for nothing_tiny; this"),
        (
            "quickstart",
            ["--trainer", "hyptrans", "--average", "2"],
            "--average goes with --trainer fairseq",
        ),
        ("probing", [], "--data is needed: a folder with tatoeba_en_de/deu-eng.zip"),
        (
            "probing",
            ["--data", "there"],
            "--data: there/ud_english_ewt/en_ewt-ud-train.conllu and ",
        ),
        ("tatoeba_en_de", [], "--table is needed: deu-eng.zip"),
        ("cogs", [], "--data is needed"),
        ("scan", [], "--data is needed"),
        ("slog", [], "--data is needed"),
        ("wordnet", [], "--data is needed"),
        ("trees", ["--only", "nonsense"], "--only: no training is called nonsense; --list names"),
    ],
)
def test_error_names_missing_inputs_before_any_work(tmp_path, monkeypatch, recipe, words, message):
    monkeypatch.delenv("HYPTRANS_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "train.en").write_text("a\n", encoding="utf-8")
    main = importlib.import_module(f"recipes.{recipe}.__main__").main
    with pytest.raises(UserError, match=f"^{message}"):
        main([*words, "--out", "out"])
    assert not (tmp_path / "out").exists()


def test_environment_variable_names_the_data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HYPTRANS_DATA", str(tmp_path))
    with pytest.raises(UserError, match=f"^--data: {tmp_path}/multi30k_en_de/train.en and "):
        multi30k(["--out", str(tmp_path / "out")])


def test_help_names_units_defaults_and_an_example():
    run = run_script("multi30k_en_de", "--help")
    assert run.returncode == 0
    assert "optimizer steps of each training (default: 3000)" in " ".join(run.stdout.split())
    assert "example: python -m recipes.multi30k_en_de" in run.stdout
