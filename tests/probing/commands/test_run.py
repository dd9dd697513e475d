"""``hyptrans probe run``: what it writes, and what it does not repeat."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from probing.commands import pipeline
from probing.commands.cli import main
from probing.commands.sources import Subject
from probing.probes.metrics import METRICS
from tests.probing.commands.runs import run_words
from tests.probing.helpers import huggingface
from tests.probing.helpers.model import make_checkpoint


def test_run_writes_figures_table_and_report(done):
    results = json.loads((done / "results.json").read_text())
    names = ["linear chain", "right-branching", "hybonet", "hybonet, random", "twin"]
    names.append("twin, random")
    assert list(results["probe"]) == names
    assert [model["name"] for model in results["models"]] == names
    assert all(set(figures) == set(METRICS) for figures in results["probe"].values())
    assert results["probe"]["linear chain"]["root"] is None
    hybonet = results["models"][2]
    assert hybonet["architecture"] == "hybonet_tiny"
    assert hybonet["space"] == "lorentz, c = 1"
    assert len(hybonet["layers"]) == 3
    roles = ["baseline", "baseline", "encoder", "fresh", "encoder", "fresh"]
    assert [model["role"] for model in results["models"]] == roles
    assert [m["of"] for m in results["models"][2:]] == ["", "hybonet", "", "twin"]
    best = max(hybonet["layers"], key=lambda layer: layer["uuas"])
    assert hybonet["layers"][hybonet["distance_layer"]] == best
    text = (done / "results.md").read_text()
    assert f"Signature: `{results['signature']}`" in text
    assert "|steps:6|" in results["signature"]
    assert "|punct:upos|" in results["signature"]
    assert "|look:3|patience:5|" in results["signature"]
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
    arcs = results["arcs"]
    assert list(arcs["uuas"]) == names
    for name, shares in arcs["uuas"].items():
        found = [share * n for share, n in zip(shares, arcs["counts"], strict=True) if n]
        uuas = sum(found) / sum(arcs["counts"])
        assert uuas == pytest.approx(results["probe"][name]["uuas"])
    shares = [f"{share:.3f}" for share in arcs["uuas"]["linear chain"] if share is not None]
    assert shares[0] == "1.000"
    assert f"| linear chain | {' | '.join(shares)} |" in text.replace(" | \N{EN DASH} |", " |")
    page = (done / "report.html").read_text()
    assert "Long edges" in page
    assert "hybonet, random" in page
    assert spaces["hybonet"]["verdict"].replace(" %", "\xa0%") in page


def test_probe_documentation_reads_uuas_by_layer(done, tmp_path, monkeypatch, capsys):
    page = (Path(__file__).parents[3] / "docs" / "probe.md").read_text(encoding="utf-8")
    (tmp_path / "probes").symlink_to(done)
    monkeypatch.chdir(tmp_path)
    (example,) = re.findall("```python\n(.*?)```", page, re.DOTALL)
    exec(example)
    layers = json.loads((done / "results.json").read_text())["models"][2]["layers"]
    assert f"\nhybonet {[round(layer['uuas'], 3) for layer in layers]}\n" in capsys.readouterr().out


def test_a_second_run_repeats_no_step_and_prints_the_same(made, done, capsys, monkeypatch):
    monkeypatch.setattr(Subject, "load", lambda *given, **named: pytest.fail("loaded again"))
    figures = (done / "results.md").read_text()
    files = {p: p.stat().st_mtime_ns for p in done.rglob("*") if p.parent != done}
    capsys.readouterr()
    assert main(run_words(made, done)) == 0
    captured = capsys.readouterr()
    # three sets of states, probes and figures, and the space of those trained
    assert captured.err.count("done by an earlier run") == 4 * 5 + 2
    assert {p: p.stat().st_mtime_ns for p in done.rglob("*") if p.parent != done} == files
    assert (done / "results.md").read_text() == figures
    assert figures.splitlines()[0] in captured.out


def test_overwrite_repeats_every_step(made, done, tmp_path, capsys):
    shutil.copytree(done, tmp_path / "out")
    capsys.readouterr()
    words = run_words(made, tmp_path / "out", "--no-random", "--overwrite", models=["twin"])
    assert main(words) == 0
    assert "done by an earlier run" not in capsys.readouterr().err
    found, before = (json.loads((p / "results.json").read_text()) for p in (tmp_path / "out", done))
    assert found["probe"]["twin"] == before["probe"]["twin"]


def test_a_stopped_run_resumes_at_its_unfinished_step(made, done, tmp_path, monkeypatch, capsys):
    words, learn = run_words(made, tmp_path, "--no-random"), pipeline.train

    def stopped(*given, name, **named):
        return sys.exit("stopped") if name == "twin" else learn(*given, name=name, **named)

    with monkeypatch.context() as patched:
        patched.setattr(pipeline, "train", stopped)
        with pytest.raises(SystemExit):
            main(words)
    capsys.readouterr()
    assert main(words) == 0
    # states of both, and probes and figures of the first
    assert capsys.readouterr().err.count("done by an earlier run") == 2 * 3 + 2
    found, whole = (json.loads((out / "results.json").read_text()) for out in (tmp_path, done))
    assert found["probe"]["twin"] == whole["probe"]["twin"]


def test_changed_settings_retrain_probes_on_the_same_states(made, done, tmp_path, capsys):
    shutil.copytree(done, tmp_path / "out")
    capsys.readouterr()
    words = run_words(made, tmp_path / "out", "--lr", "0.01", models=["hybonet"])
    assert main(words) == 0
    assert capsys.readouterr().err.count("done by an earlier run") == 2 * 3 + 1
    # a seed draws fresh parameters and nothing of trained encoders
    assert main([*words, "--seed", "2"]) == 0
    assert capsys.readouterr().err.count("done by an earlier run") == 3


def test_a_changed_checkpoint_triggers_extraction(made, done, tmp_path, capsys):
    shutil.copytree(done, tmp_path / "out")
    shutil.copytree(made / "hybonet", tmp_path / "hybonet")
    make_checkpoint(
        tmp_path / "hybonet" / "checkpoint_best.pt", made / "data", "hybonet_tiny", seed=8
    )
    words = run_words(made, tmp_path / "out", models=["twin"])
    words += ["--checkpoint", str(tmp_path / "hybonet" / "checkpoint_best.pt")]
    capsys.readouterr()
    assert main(words) == 0
    # what the twin has, and nothing of the other
    assert capsys.readouterr().err.count("done by an earlier run") == 2 * 5 + 1
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    before = json.loads((done / "results.json").read_text())
    assert results["probe"]["twin"] == before["probe"]["twin"]
    assert results["probe"]["hybonet"] != before["probe"]["hybonet"]


@pytest.mark.parametrize("probe", ["poincare", "euclidean"])
def test_run_takes_other_probes_names_and_no_random_encoders(made, tmp_path, probe):
    words = ["--probe", probe, "--names", "Hybo Net", "--no-random"]
    assert main(run_words(made, tmp_path, *words, models=["hybonet"])) == 0
    results = json.loads((tmp_path / "results.json").read_text())
    assert list(results["probe"]) == ["linear chain", "right-branching", "Hybo Net"]
    assert results["models"][-1]["probe"] == probe
    assert (tmp_path / "Hybo-Net").is_dir()


def test_a_hugging_face_encoder_runs_beside_a_checkpoint(made, tmp_path):
    huggingface.save(tmp_path / "small")
    words = ["--hf", str(tmp_path / "small"), "--no-random"]
    assert main(run_words(made, tmp_path / "out", *words, models=["hybonet"])) == 0
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    names = ["linear chain", "right-branching", "hybonet", "small"]
    assert list(results["probe"]) == names
    assert results["models"][3]["architecture"] == "bert"


WITHOUT_FAIRSEQ = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("fairseq", "hydra", "omegaconf"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
from probing.commands.cli import main
from probing.commands.pipeline import score
sys.exit(main(sys.argv[1:]))
"""


def test_a_hugging_face_encoder_needs_no_fairseq(made, tmp_path):
    huggingface.save(tmp_path / "small")
    words = ["--hf", str(tmp_path / "small"), "--no-random"]
    command = map(str, run_words(made, tmp_path / "out", *words, models=[]))
    subprocess.run([sys.executable, "-c", WITHOUT_FAIRSEQ, *command], check=True)
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert results["models"][-1]["architecture"] == "bert"
