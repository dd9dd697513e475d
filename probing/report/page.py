"""Render the HTML page of the report."""

import base64
import hashlib
import re
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from hyptrans.support.errors import clean
from hyptrans.support.files import write_whole
from probing.geometry.layers import HEADER, cells, verdict
from probing.probes.metrics import METRICS
from probing.report import charts, results
from probing.report.charts import NOTHING, figure_number
from probing.report.data import ModelResult, Report
from probing.report.sentences import example_figures
from probing.settings import SENTENCES

NAMES = {
    "uuas": "undirected unlabeled attachment score",
    "dspr": "distance Spearman correlation",
    "root": "root accuracy",
    "nspr": "norm Spearman correlation",
}
"""The metrics' full names."""
FOLDER = resources.files("probing.report") / "assets"


def write_report(path: Path, report: Report) -> None:
    """Write ``report`` as one self-contained HTML file, completely or not at all."""
    write_whole(path, render(report))


def render(report: Report) -> str:
    """Return the page as text."""
    environment = jinja2.Environment(
        # the page includes each section from a file
        loader=jinja2.FunctionLoader(_read),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=_printable,
    )
    environment.filters |= {"unbroken": unbroken, "space_cells": cells}
    predicted = {name for example in report.examples for name in example.predictions}
    names = [model.name for model in report.models if model.name in predicted]
    style, script = _read("style.css"), _read("script.js")
    page = environment.get_template("page.html").render(
        report=report,
        style=Markup(style),
        script=Markup(script),
        policy=policy(style, script),
        metrics=[(metric, title, NAMES[metric]) for metric, title in results.TITLES.items()],
        rows=rows(report.models),
        layers=charts.layer_charts(report.models),
        key=charts.key(report.models),
        tables=results.beside(report),
        examples=list(example_figures(report)),
        models=names,
        verdict=verdict,
        space_header=HEADER,
        sentences=SENTENCES,
    )
    # keep a number and its unit on one line
    return re.sub(r"(?<=\d) %", "\N{NO-BREAK SPACE}%", page)


def policy(style: str, script: str) -> str:
    """Return a Content-Security-Policy that allows this style and script, and no network."""
    style_hash, script_hash = (
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (style, script)
    )
    return (
        f"default-src 'none'; style-src-elem 'sha256-{style_hash}'; "
        # a plot's elements have inline styles
        f"style-src-attr 'unsafe-inline'; script-src 'sha256-{script_hash}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def rows(models: list[ModelResult]) -> list[dict[str, Any]]:
    """Return the table's rows: for each model and metric the figure, deviation and whether best.

    The best are the trained encoders with the highest printed figure, unless a baseline made
    without an encoder reaches it.
    """
    texts = {m.name: {k: figure_number(m.test.get(k), 3) for k in METRICS} for m in models}
    rivals = {m.name for m in models if m.role == "encoder"}
    best = {}
    for metric in METRICS:
        found = {m.name: texts[m.name][metric] for m in models if m.role != "fresh"}
        numbers = {name: float(text) for name, text in found.items() if text != NOTHING}
        highest = {name for name, value in numbers.items() if value == max(numbers.values())}
        best[metric] = highest if len(rivals) > 1 and highest <= rivals else set()
    made = []
    for model in models:
        cells = []
        for metric, text in texts[model.name].items():
            deviation = model.spread.get(metric) if text != NOTHING else None
            shown = "" if deviation is None else figure_number(deviation, 3)
            cells.append((text, shown, model.name in best[metric]))
        made.append({"model": model, "cells": cells, "layers": results.layers_of(model)})
    return made


def unbroken(text: str) -> str:
    """Make the cell's lines break only before brackets, equals signs and deviations."""
    return re.sub(r"(?<=p) | (?![(=±])", "\N{NO-BREAK SPACE}", text)


def _read(name: str) -> str:
    """Read a text file from this package's assets."""
    return (FOLDER / name).read_text(encoding="utf-8")


def _printable(value: Any) -> Any:
    """Remove characters that no document may hold from a text that the template prints."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return clean(value)
    return value
