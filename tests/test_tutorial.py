"""The notebook runs as it stands, and prints and draws what it shows."""

import contextlib
import io
import json
import re
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parents[1] / "docs" / "tutorial.ipynb"
NUMBER = re.compile(r"-?\d+(\.\d+)?")


@pytest.mark.slow
def test_notebook_reproduces_its_output(tmp_path, monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    monkeypatch.chdir(tmp_path)
    names = {}
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        pyplot.close("all")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("".join(cell["source"]), "cell", "exec"), names)
        shown = [output for output in cell["outputs"] if output["output_type"] == "stream"]
        text = "".join(line for output in shown for line in output["text"])
        assert NUMBER.sub("#", printed.getvalue()) == NUMBER.sub("#", text)
        assert len(pyplot.get_fignums()) == len(cell["outputs"]) - len(shown)
    assert list(tmp_path.iterdir()) == []
