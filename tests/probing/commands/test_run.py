"""``hyptrans probe run``: what it writes, and what it does not repeat."""

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
from tests.probing.commands.runs import results_of, run_words, subjects
from tests.probing.helpers import huggingface
from tests.probing.helpers.model import make_checkpoint


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


def test_a_hugging_face_encoder_runs_without_fairseq_and_beside_a_checkpoint(made, tmp_path):
    huggingface.save(tmp_path / "small")
    words = ["--hf", str(tmp_path / "small"), "--no-random"]
    command = run_words(made, tmp_path / "out", *words, models=[])
    subprocess.run([sys.executable, "-c", WITHOUT_FAIRSEQ, *command], check=True)
    assert main(run_words(made, tmp_path / "out", *words, models=["hybonet"])) == 0
    models = results_of(tmp_path / "out")["models"][2:]
    assert [model["name"] for model in models] == ["hybonet", "small"]
    assert [model["architecture"] for model in models] == ["hybonet_tiny", "bert"]
