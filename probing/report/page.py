"""The page around the pictures."""

import base64
import hashlib
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from hyptrans.support.files import write_whole
from probing.report import curves, figures, radii, svg
from probing.report.data import METRICS, ModelResult, Report
from probing.report.figures import figure_number

FOLDER = resources.files("probing.report") / "assets"


def write_report(path: Path, report: Report) -> None:
    """Write ``report`` as one HTML file that needs no other, whole or not at all."""
    write_whole(path, render(report))


def render(report: Report) -> str:
    """The page as text."""
    environment = jinja2.Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=_printable,
    )
    style, script = _read("style.css"), _read("script.js")
    return environment.from_string(_read("page.html")).render(
        report=report,
        style=Markup(style),
        script=Markup(script),
        policy=policy(style, script),
        metrics=[(metric, curves.TITLES[metric]) for metric in METRICS],
        rows=rows(report.models),
        layers=figures.layer_figures(report),
        examples=figures.example_figures(report),
        models=figures.model_names(report),
        depths=figures.radius_figures(report),
        few=radii.FEW,
    )


def policy(style: str, script: str) -> str:
    """A Content-Security-Policy: this very style and script, nothing from any network."""
    style_hash, script_hash = (
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (style, script)
    )
    return (
        f"default-src 'none'; style-src 'sha256-{style_hash}'; script-src 'sha256-{script_hash}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def rows(models: list[ModelResult]) -> list[dict[str, Any]]:
    """The table: what each model shows in each column, and whether it is the best there.

    The best are the models, baselines apart, whose number as printed is the highest.
    """
    texts = {m.name: {k: result_number(k, m.test.get(k)) for k in METRICS} for m in models}
    made = []
    for model in models:
        cells = []
        for metric in METRICS:
            rivals = [texts[m.name][metric] for m in models if not m.baseline]
            numbers = [float(text) for text in rivals if text != figures.NOTHING]
            text = texts[model.name][metric]
            best = not model.baseline and len(rivals) > 1 and text != figures.NOTHING
            cells.append((text, best and float(text) == max(numbers)))
        made.append({"model": model, "cells": cells})
    return made


def result_number(metric: str, value: float | None) -> str:
    """A metric as the table prints it: three decimals, Root as a percentage with one."""
    if value is None:
        return figures.NOTHING
    return figure_number(curves.shown(metric, value), 1 if metric == "root" else 3)


def _read(name: str) -> str:
    """The text of a file of this package."""
    return (FOLDER / name).read_text(encoding="utf-8")


def _printable(value: Any) -> Any:
    """Take what no document may hold out of a text that the template prints."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return svg.clean(value)
    return value
