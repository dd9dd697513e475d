"""Names of models are text in the table and in the report, whatever they are."""

import dataclasses
import re

import pytest

from hyptrans.support.tables import escaped
from probing.report import ModelResult, Report, results
from probing.report.data import Arcs, Selectivity

NAMES = ["<script>x</script>", "a | b | c", "`a`", "[x](https://e.org)", "https://e.org"]
NAMES += [
    "x\n| y | z |",
    "abc\u202egnp.exe",
    "![x](https://e.org/x.png)",
    "a\x1b[31mb",
    "&lt;b&gt;",
]


@pytest.mark.parametrize("name", NAMES)
def test_names_are_escaped_in_the_report(name):
    shown = escaped(name)
    assert not re.search(r"(?<!\\)[|`<>\[\]*&]|\w://|\n|[\x00-\x1f\u202a-\u202e]", shown)


def test_names_are_escaped_in_the_results_text():
    name = "<img src=x>"
    result = ModelResult(name, "a", "lorentz", "lorentz", [], 0, 0, {"uuas": 0.5})
    other = dataclasses.replace(result, name="b|c")
    arcs, selective = Arcs([1], [1], {name: [0.5]}), [Selectivity(name, [0.5], [0.25])]
    report = Report("", "", [result], [], "", comparisons={"b|c": []}, arcs=arcs)
    report = dataclasses.replace(report, selectivities=selective)
    notes = [table.markdown() for table in results.beside(report)]
    text = results.markdown([result, other], "probe:lorentz", notes)
    assert not re.search(r"(?<!\\)[<|]img|(?<!\\)<", text)
    assert text.count("src=x") == 5
