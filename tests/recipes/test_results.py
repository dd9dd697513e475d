import json
import re
from copy import deepcopy

import pytest

from hyptrans.support.errors import UserError
from recipes import tables
from recipes.common import results
from recipes.multi30k_en_de.__main__ import table as multi30k

BLOCKS = tables.blocks()


def test_there_are_tables_to_check():
    shown = {(readme.parent.name, name) for readme, name in BLOCKS}
    assert shown >= {("quickstart", "results"), ("study", "results"), ("probing", "checkpoints")}
    assert {name for page, name in BLOCKS if page == tables.README} == {"choices"}


@pytest.mark.parametrize(
    ("readme", "name"), BLOCKS, ids=[f"{readme.parent.name} {name}" for readme, name in BLOCKS]
)
def test_readme_shows_the_committed_results_and_nothing_else(readme, name):
    shown = f"<!-- {name}: begin -->\n{BLOCKS[readme, name]}\n<!-- {name}: end -->"
    assert shown in readme.read_text(encoding="utf-8")


def test_pictures_are_drawn_from_the_committed_results():
    drawn = tables.drawings()
    assert {path for path in drawn if tables.STUDY in path.parents} == set(
        tables.STUDY.rglob("*.svg")
    )
    for path, text in drawn.items():
        old, new = (parts(t) for t in (path.read_text(encoding="utf-8"), text))
        assert old[::2] == new[::2]
        # versions of matplotlib measure the height of letters differently
        assert list(map(float, old[1::2])) == pytest.approx(list(map(float, new[1::2])), abs=2)


def parts(picture):
    """What stands between the places in a picture, and these."""
    return re.split(r"(-?\d+\.\d+)", picture)


FOUND = {
    "models": {
        "b": {
            "parameters": 1234567,
            "valid_perplexity": 7.8,
            "bleu_beam1": 29.26,
            "bleu_beam5": 30.0,
        }
    },
    "signatures": {"bleu_beam1": "tok:13a", "bleu_beam5": "tok:13a"},
    "updates": 1500,
    "seed": 3,
    "versions": {"torch": "2.6.0", "fairseq": "0.12.2"},
}


def test_a_difference_from_the_twin_has_its_p_beside_the_score():
    found = deepcopy(FOUND)
    found["models"]["twin"] = found["models"]["b"]
    found |= {"baseline": "twin", "p": {"b": {"bleu_beam5": 0.0312}}, "averaged": 5}
    found["comparison_signatures"] = {"bleu": "bs:1000|tok:13a", "chrf": "bs:1000|nc:6"}
    table = multi30k(found).splitlines()
    assert table[0] == "| model | parameters | valid perplexity | BLEU, greedy | BLEU, beam 5 |"
    assert table[2] == "| b | 1,234,567 | 7.80 | 29.3 | 30.0 (0.031) |"
    assert table[3] == "| twin | 1,234,567 | 7.80 | 29.3 | 30.0 |"
    assert (
        "in brackets p of the difference from `twin` by the choice of sentences alone" in table[-1]
    )
    signed = "bootstrap: one-sided, not corrected), `bs:1000|tok:13a`, `bs:1000|nc:6`;"
    assert signed in table[-1]
    assert "the average of the last 5 checkpoints of each" in table[-1]


def test_results_go_between_the_markers_of_their_name_and_nowhere_else(tmp_path):
    readme = tmp_path / "README.md"
    other = "<!-- checkpoints: begin -->\nold\n<!-- checkpoints: end -->\n"
    readme.write_text(f"# T\n\n{results.BEGIN}\nold\n{results.END}\n{other}end\n")
    results.publish(tmp_path, {"a": 1}, "| own |")
    assert readme.read_text() == f"# T\n\n{results.BEGIN}\n| own |\n{results.END}\n{other}end\n"
    results.publish(tmp_path, {"b": 2}, "| given |", "checkpoints")
    assert "begin -->\n| own |\n<!-- results: end" in readme.read_text()
    assert "begin -->\n| given |\n<!-- checkpoints: end" in readme.read_text()
    assert json.loads((tmp_path / "results.json").read_text(encoding="utf-8")) == {"a": 1}
    assert json.loads((tmp_path / "checkpoints.json").read_text(encoding="utf-8")) == {"b": 2}
    assert not results.put_into(readme, "| own |")


def test_a_readme_without_markers_is_an_error(tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text("# T\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"README\.md lacks the lines"):
        results.put_into(readme, "| new |")
    assert readme.read_text(encoding="utf-8") == "# T\n"


def test_results_name_versions_and_cores():
    found = results.surroundings()
    assert found["versions"].keys() >= {"python", "torch", "fairseq", "sacrebleu", "hyptrans"}
    assert found["cpu_cores"] >= 1
