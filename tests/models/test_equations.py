import ast
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "hyptrans"
ROW = re.compile(r"\| (\w+) eq\. (\d+) \| [^|]+ \| \[([\w/.]+):(\w+)\]\(\.\./([\w/.]+)\) \|")
ROWS = ROW.findall((PACKAGE / "models" / "README.md").read_text(encoding="utf-8"))
LIST = re.compile(r"eq\. (\d+(?:(?:, | and |-|\s+to\s+)\d+)*)")


def numbers(text):
    """Numbers of all equations that a docstring names: one, several, or from one to another."""
    found = set()
    for words in LIST.findall(" ".join(text.split())):
        for part in re.split(r", | and ", words):
            first, *last = re.split(r"-| to ", part)
            found |= set(range(int(first), int((last or [first])[0]) + 1))
    return found


def test_equation_table_covers_all_papers():
    assert {row[0] for row in ROWS} == {"HyboNet", "HAN", "Hypformer", "HVT"}
    table = (PACKAGE / "models" / "README.md").read_text(encoding="utf-8")
    assert len(ROWS) == table.count("\n| ") - 2  # all but the header are read


def node_of(path, name):
    """The function or class of a row."""
    module = ast.parse((PACKAGE / path).read_text(encoding="utf-8"))
    (found,) = (
        node
        for node in ast.walk(module)
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name
    )
    return found


@pytest.mark.parametrize(("paper", "number", "path", "name", "link"), ROWS)
def test_every_row_links_to_a_function_that_names_its_equation(paper, number, path, name, link):
    assert path == link
    found = node_of(path, name)
    docstring = ast.get_docstring(found) or ""
    assert paper in docstring
    assert int(number) in numbers(docstring)
