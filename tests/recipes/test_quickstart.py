import json
import re
import subprocess
import sys

import pytest

from hyptrans.support.errors import run_command
from recipes.quickstart.__main__ import main
from tests.recipes.scripts import ROOT, run_script

pytestmark = pytest.mark.slow

MODEL = "euclidean_prenorm_tiny"
SMALL = ("--updates", "30", "--sentences", "400", "--vocab-size", "350", "--probe-steps", "30")
SMALL = (*SMALL, "--no-untrained")


def quickstart(out, *options):
    return run_script("quickstart", "--out", str(out), "--cpu", *options)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("quickstart")
    run = quickstart(out, "--archs", MODEL, *SMALL)
    assert run.returncode == 0, run.stderr + run.stdout
    return out, run.stdout


def test_an_extra_that_is_missing_is_told_before_any_work(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "conllu", None)
    monkeypatch.setattr(sys, "argv", ["run.py", "--out", str(tmp_path / "out")])
    assert run_command(main) == 2
    error = "error: conllu is missing: pip install 'hyptrans[probing]'\n"
    assert tuple(capsys.readouterr()) == ("", error)
    assert not (tmp_path / "out").exists()


def test_it_ends_with_results_and_a_table_of_them(finished):
    out, shown = finished
    found = json.loads((out / "results.json").read_text(encoding="utf-8"))
    signatures, scores = found["signatures"], found["models"][MODEL]
    assert signatures["bleu"].startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    assert found["models"].keys() == {MODEL}
    row = next(line for line in shown.splitlines() if line.startswith(f"| {MODEL} |"))
    assert f"| {scores['parameters']:,} | {scores['bleu']:.1f} | {scores['chrf']:.1f} |" in row
    assert all(signature in shown for signature in signatures.values())
    assert found["updates"] == 30


def test_it_ends_with_the_trees_in_the_encoders(finished):
    out, shown = finished
    found = json.loads((out / "results.json").read_text(encoding="utf-8"))
    assert found["probe"].keys() >= {"linear chain", MODEL, f"{MODEL}, random"}
    scores = found["probe"][MODEL]
    assert scores.keys() == {"uuas", "dspr", "root", "nspr"}
    assert 0 < scores["uuas"] < 1
    assert f"| {MODEL} | {scores['uuas']:.3f} | {scores['dspr']:.3f} |" in shown
    report = (out / "report.html").read_text(encoding="utf-8")
    assert "<svg" in report
    assert str(out / "report.html") in shown


def test_score_is_the_one_that_fairseq_generate_prints(finished):
    out, _ = finished
    ours = json.loads((out / "results.json").read_text(encoding="utf-8"))["models"][MODEL]["bleu"]
    printed = (out / f"{MODEL}_beam4" / "generate-test.txt").read_text(encoding="utf-8")
    theirs = float(re.search(r"Generate test with beam=4: BLEU = ([\d.]+) ", printed)[1])
    assert ours == pytest.approx(theirs, abs=0.006)
    assert ours > 0


def test_every_command_shown_is_one_a_user_can_type(finished):
    _, shown = finished
    commands = [line[2:] for line in shown.splitlines() if line.startswith("$ ")]
    programs = [
        re.search(r"(\w[\w-]*(\.py)?) ", command.split("bin/")[1])[1] for command in commands
    ]
    assert programs == ["python", "python", "fairseq-train", "fairseq-generate", "python"]
    assert " --arch euclidean_prenorm_tiny " in commands[2]
    help_of_first = commands[0].split(" --out")[0] + " --help"
    run = subprocess.run(help_of_first, shell=True, cwd=ROOT, capture_output=True, check=False)
    assert run.returncode == 0


def test_progress_shows_updates_and_perplexities(finished):
    _, shown = finished
    assert re.search(rf"\] train_{MODEL}: update 30, valid perplexity [\d.]+\n", shown)


def test_number_of_parameters_leaves_out_what_fairseq_keeps_twice(finished):
    out, _ = finished
    found = json.loads((out / "results.json").read_text(encoding="utf-8"))
    log = (out / "logs" / f"train_{MODEL}.log").read_text(encoding="utf-8")
    stated = int(re.search(r"num\. shared model params: ([\d,]+)", log)[1].replace(",", ""))
    # two encoder layers: attention 4 d d + 4 d, feed-forward 2 d f + d + f, kept a second time
    d, f = 128, 512
    assert stated - found["models"][MODEL]["parameters"] == 2 * (
        4 * d * d + 4 * d + 2 * d * f + d + f
    )


def test_a_second_run_reuses_every_step(finished):
    out, _ = finished
    before = json.loads((out / "results.json").read_text(encoding="utf-8"))
    run = quickstart(out, "--archs", MODEL, *SMALL)
    assert run.returncode == 0
    assert run.stdout.count(": reused from an earlier run of") == 5
    assert ": done in" not in run.stdout
    assert json.loads((out / "results.json").read_text(encoding="utf-8")) == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--archs", "nothing_tiny"], "error: --archs: no settings for nothing_tiny"),
        (["--updates", "0", "--jobs", "-1"], "error: at least 1 is needed: --updates 0, --jobs -1"),
    ],
)
def test_bad_options_are_one_sentence_and_status_2(tmp_path, options, message):
    run = quickstart(tmp_path / "out", *options)
    assert run.returncode == 2
    assert run.stderr.startswith(message)
    assert run.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_both_models_learn_the_toy_language(tmp_path):
    run = quickstart(tmp_path)
    assert run.returncode == 0, run.stderr
    found = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    bleu = {name: row["bleu"] for name, row in found["models"].items()}
    assert bleu["hybonet_plus_tiny"] > bleu["euclidean_prenorm_tiny"] > 60
    assert bleu["hybonet_plus_tiny, untrained"] < 5
