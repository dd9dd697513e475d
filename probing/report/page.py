"""The page around the pictures."""

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
from probing.geometry.layers import verdict
from probing.probes.metrics import METRICS
from probing.report import charts, plots, results, sentences
from probing.report.charts import NOTHING, figure_number
from probing.report.data import ModelResult, Report
from probing.settings import SENTENCES

NAMES = {
    "uuas": "undirected unlabeled attachment score",
    "dspr": "distance Spearman correlation",
    "root": "root accuracy",
    "nspr": "norm Spearman correlation",
}
"""The metrics, spelled out."""
FOLDER = resources.files("probing.report") / "assets"


def write_report(path: Path, report: Report) -> None:
    """Write ``report`` as one HTML file that needs no other, whole or not at all."""
    write_whole(path, render(report))


def render(report: Report) -> str:
    """The page as text."""
    environment = jinja2.Environment(
        # a section is a file that the page includes
        loader=jinja2.FunctionLoader(_read),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=_printable,
    )
    environment.filters["unbroken"] = unbroken
    style, script = _read("style.css"), _read("script.js")
    page = environment.get_template("page.html").render(
        report=report,
        style=Markup(style),
        script=Markup(script),
        policy=policy(style, script),
        metrics=[(metric, title, NAMES[metric]) for metric, title in results.TITLES.items()],
        rows=rows(report.models),
        layers=charts.layer_charts(report),
        ranks=charts.rank_charts(report),
        # rank curves have theirs with the charts
        tables=results.beside(report, ranks=False),
        examples=sentences.example_figures(report),
        models=sentences.model_names(report),
        depths=charts.radius_charts(report),
        spaces=charts.space_charts(report),
        verdict=verdict,
        sentences=SENTENCES,
        few=plots.FEW,
    )
    # no line ends between a number and its unit
    return re.sub(r"(?<=\d) %", "\N{NO-BREAK SPACE}%", page)


def policy(style: str, script: str) -> str:
    """A Content-Security-Policy: this very style and script, nothing from any network."""
    style_hash, script_hash = (
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (style, script)
    )
    return (
        f"default-src 'none'; style-src-elem 'sha256-{style_hash}'; "
        # a plot's elements have styles of their own
        f"style-src-attr 'unsafe-inline'; script-src 'sha256-{script_hash}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def rows(models: list[ModelResult]) -> list[dict[str, Any]]:
    """The table: what each model shows in each column, its deviation, and whether it is the best.

    The best are the trained encoders whose number as printed is the highest, if no tree drawn
    without an encoder has as high a one.
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
    """A cell whose lines end before brackets, signs of equality and deviations alone."""
    return re.sub(r"(?<=p) | (?![(=±])", "\N{NO-BREAK SPACE}", text)


def _read(name: str) -> str:
    """The text of a file of this package."""
    return (FOLDER / name).read_text(encoding="utf-8")


def _printable(value: Any) -> Any:
    """Take what no document may hold out of a text that the template prints."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return clean(value)
    return value
