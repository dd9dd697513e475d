"""Render the HTML page of the report."""

import base64
import hashlib
import re
from typing import Any

import jinja2
from markupsafe import Markup

from hyptrans.support.errors import clean
from probing.geometry.layers import COLUMNS, cells, verdict
from probing.probes.metrics import METRICS
from probing.report import arcs, charts, disk, layout, results
from probing.report.data import Example, ModelResult, Report
from probing.report.results import NOTHING, figure
from probing.settings import SENTENCES


def render(report: Report) -> str:
    """Return the page as text: one HTML file that opens offline."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("probing.report", "assets"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=_printable,
    )
    environment.filters |= {"unbroken": unbroken, "space_cells": cells}
    predicted = {name for example in report.examples for name in example.predictions}
    names = [model.name for model in report.models if model.name in predicted]
    script = environment.get_template("script.js").render()
    page = environment.get_template("page.html").render(
        report=report,
        script=Markup(script),
        policy=policy(script),
        titles=results.TITLES,
        rows=rows(report.models),
        layers=charts.layer_charts(report.models),
        key=charts.key(report.models),
        tables=results.beside(report),
        markdown=results.table(report.models),
        pictures=[
            [_pictures(example, name) for name in names if name in example.predictions]
            for example in report.examples
        ],
        models=names,
        verdict=verdict,
        space_header=list(COLUMNS),
        sentences=SENTENCES,
    )
    # keep a number and its unit on one line
    return re.sub(r"(?<=\d) %", "\N{NO-BREAK SPACE}%", page)


def policy(script: str) -> str:
    """Return a Content-Security-Policy that allows this script, styles, and no network."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def rows(models: list[ModelResult]) -> list[dict[str, Any]]:
    """Return the table's rows: for each model and metric the figure, deviation and whether best.

    The best are the trained encoders with the highest printed figure, unless a baseline made
    without an encoder reaches it.
    """
    made: list[dict[str, Any]] = [
        {"model": model, "cells": [], "layers": results.layers_of(model)} for model in models
    ]
    several = sum(model.role == "encoder" for model in models) > 1
    for metric in METRICS:
        texts = [figure(model.test.get(metric)) for model in models]
        rivals = [t for t, m in zip(texts, models, strict=True) if m.role == "encoder"]
        others = [t for t, m in zip(texts, models, strict=True) if m.role == "baseline"]
        highest = max((text for text in rivals if text != NOTHING), key=float, default="")
        won = several and highest and all(float(t) < float(highest) for t in others if t != NOTHING)
        for row, text, model in zip(made, texts, models, strict=True):
            deviation = model.spread.get(metric) if text != NOTHING else None
            shown = "" if deviation is None else figure(deviation)
            best = bool(won) and model.role == "encoder" and text == highest
            row["cells"].append((text, shown, best))
    return made


def _pictures(example: Example, name: str) -> dict[str, Any]:
    """Return the pictures of one sentence and one model."""
    prediction = example.predictions[name]
    kept = [not mark for mark in example.punctuation]
    laid = layout.place(prediction.distance_points, prediction.root, kept)
    at_word = 0 <= prediction.root < len(example.words)
    return {
        "name": name,
        "score": arcs.score(example, prediction),
        "tree": arcs.draw(example, prediction, name),
        "layout": laid,
        "center": example.words[prediction.root] if at_word else None,
        "disk": None if laid is None else disk.draw(example, prediction, name, laid),
    }


def unbroken(text: str) -> str:
    """Make the cell's lines break only before brackets, equals signs and deviations."""
    return re.sub(r"(?<=p) | (?![(=±])", "\N{NO-BREAK SPACE}", text)


def _printable(value: Any) -> Any:
    """Remove characters that no document may hold from a text that the template prints."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return clean(value)
    return value
