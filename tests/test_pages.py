"""The examples of code.md, serve.md, coming-from.md and the notebook run as they stand."""

import json
import os
import re

import pytest

import hyptrans
from tests.probing.helpers.model import write_pairs
from tests.programs import ROOT, SCRIPTS, printed, run
from tests.serve.conftest import running

DOCS = ROOT / "docs"
NUMBER = re.compile(r"-?\d+(\.\d+)?")
SHORT = """
set -euo pipefail
hyptrans() {
    case $1 in
        prepare) command hyptrans "$@" --vocab-size 70 --workers 1 ;;
        train) command hyptrans "$@" --max-update 2 --validate-interval-updates 2 --device cpu ;;
        *) command hyptrans "$@" ;;
    esac
}
"""
"""The blocks of coming-from.md with less text and fewer updates: the last of two flags counts."""


def blocks(page, language, heading):
    """The examples of a section, or of a page."""
    text = (DOCS / page).read_text(encoding="utf-8")
    section = text.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(rf"^```{language}\n(.*?)^```", section, re.MULTILINE | re.DOTALL)


def bash(code, folder):
    """Run a script with the commands of this environment; return what it prints."""
    path = f"{SCRIPTS}{os.pathsep}{os.environ['PATH']}"
    return run("bash", "-c", code, cwd=folder, env={**os.environ, "PATH": path}).stdout


@pytest.fixture
def folder(tmp_path):
    write_pairs(tmp_path)
    return tmp_path


def test_documented_server_requests_work():
    python, curl = (blocks("serve.md", kind, "Requests") for kind in ("python", "bash"))
    wanted = hyptrans.load("tatoeba-en-de")
    with running({"tatoeba-en-de": wanted}) as port:
        (code,) = (code.replace(":8000", f":{port}") for code in python)
        assert printed(code) == f"{wanted.translate('Where is the station?')}\n"
        (lines,) = (code.replace(":8000", f":{port}") for code in curl)
        found = [json.loads(bash(f"curl --silent {line[5:]}", ".")) for line in lines.splitlines()]
    texts = [[one["text"] for one in row] for row in found[0]["results"]]
    own = wanted.n_best(["Good night.", "Where is it?"], 2)
    assert texts == [[one.text for one in row] for row in own]
    assert [one["name"] for one in found[1]] == ["tatoeba-en-de"]
    assert found[2]["status"] == "ok"


def test_documented_layers_train_in_a_custom_network():
    (code,) = blocks("code.md", "python", "Layers in your own network")
    assert printed(code) == "tensor(True)\n" * 2


def test_documented_hugging_face_example_generates():
    load, _ = blocks("coming-from.md", "python", "Hugging Face")
    assert printed(load) == "['Gute Nacht!', 'Wo ist der Bahnhof?']\n"


@pytest.mark.slow
def test_documented_fairseq_commands_prepare_train_and_translate(folder, monkeypatch):
    (code,) = blocks("coming-from.md", "bash", "fairseq")
    assert "\nBLEU " in bash(SHORT + code, folder)
    assert len((folder / "out.de").read_text().splitlines()) == 12
    # on the same data
    _, train = blocks("coming-from.md", "python", "Hugging Face")
    monkeypatch.chdir(folder)
    exec(train, {})
    assert "hybonet_plus_tiny" in hyptrans.load("trained").architecture


@pytest.mark.slow
def test_documented_training_accepts_flags_and_a_file(folder):
    (code,) = blocks("coming-from.md", "bash", "eole")
    bash(SHORT + code, folder)
    assert len((folder / "out.txt").read_text().splitlines()) == 36
    assert "seed: 2" in (folder / "second" / "run.yaml").read_text()


@pytest.mark.slow
def test_notebook_reproduces_its_output(tmp_path, monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    monkeypatch.chdir(tmp_path)
    names = {}
    for cell in json.loads((DOCS / "tutorial.ipynb").read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        pyplot.close("all")
        found = printed("".join(cell["source"]), names)
        shown = [output for output in cell["outputs"] if output["output_type"] == "stream"]
        text = "".join(line for output in shown for line in output["text"])
        assert NUMBER.sub("#", found) == NUMBER.sub("#", text)
        assert len(pyplot.get_fignums()) == len(cell["outputs"]) - len(shown)
    assert list(tmp_path.iterdir()) == []
