import json
import re

import pytest

from hyptrans.support.errors import UserError
from recipes import first_page, tables
from recipes.common import results
from tests.recipes.scripts import RECIPES

READMES = tables.with_tables()


def test_there_are_readmes_to_check():
    assert {path.parent.name for path in READMES} >= {"quickstart", "study"}


@pytest.mark.parametrize("readme", READMES, ids=lambda path: path.parent.name)
def test_readme_shows_the_committed_results_and_nothing_else(readme):
    assert results.block_of(readme) == tables.block_for(readme.parent)


@pytest.mark.parametrize("readme", READMES, ids=lambda path: path.parent.name)
def test_pictures_beside_a_readme_are_drawn_from_its_committed_results(readme):
    drawn = tables.pictures_for(readme.parent)
    there = {str(path.relative_to(readme.parent)) for path in readme.parent.rglob("*.svg")}
    assert there == drawn.keys()
    for name, text in drawn.items():
        old, new = (parts(t) for t in ((readme.parent / name).read_text(encoding="utf-8"), text))
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


def test_multi30k_table_shows_every_number_with_its_signature(tmp_path):
    recipe = RECIPES / "multi30k_en_de" / "run.py"
    (tmp_path / "run.py").write_text(recipe.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "results.json").write_text(json.dumps(FOUND), encoding="utf-8")
    table = tables.block_for(tmp_path)
    assert "| b | 1,234,567 | 7.80 | 29.3 | 30.0 |" in table.splitlines()
    assert "sacreBLEU `tok:13a`" in table
    assert "1,500 updates; one run of each, seed 3" in table


def test_multi30k_table_shows_chrf_where_it_was_measured(tmp_path):
    recipe = RECIPES / "multi30k_en_de" / "run.py"
    (tmp_path / "run.py").write_text(recipe.read_text(encoding="utf-8"), encoding="utf-8")
    found = json.loads(json.dumps(FOUND))
    found["signatures"]["chrf_beam5"] = "nc:6"
    found["models"]["b"]["chrf_beam5"] = 55.55
    (tmp_path / "results.json").write_text(json.dumps(found), encoding="utf-8")
    table = tables.block_for(tmp_path)
    assert "| BLEU, beam 5 | chrF, beam 5 |" in table.splitlines()[0]
    assert "| 29.3 | 30.0 | 55.5 |" in table
    assert "sacreBLEU `tok:13a`, `nc:6` on" in table


def test_a_difference_from_the_twin_has_its_p_beside_the_score(tmp_path):
    recipe = RECIPES / "multi30k_en_de" / "run.py"
    (tmp_path / "run.py").write_text(recipe.read_text(encoding="utf-8"), encoding="utf-8")
    found = json.loads(json.dumps(FOUND))
    found["models"]["twin"] = found["models"]["b"]
    found |= {"baseline": "twin", "p": {"b": {"bleu_beam5": 0.0312}}, "averaged": 5}
    found["comparison_signatures"] = {"bleu": "bs:1000|tok:13a", "chrf": "bs:1000|nc:6"}
    (tmp_path / "results.json").write_text(json.dumps(found), encoding="utf-8")
    table = tables.block_for(tmp_path).splitlines()
    assert table[2] == "| b | 1,234,567 | 7.80 | 29.3 | 30.0 (0.031) |"
    assert table[3] == "| twin | 1,234,567 | 7.80 | 29.3 | 30.0 |"
    assert "in brackets p of the difference from `twin`: " in table[-1]
    assert "one-sided, as sacreBLEU's paired bootstrap counts it" in table[-1]
    assert (
        "not corrected for the number of comparisons, `bs:1000|tok:13a`, `bs:1000|nc:6`;"
        in table[-1]
    )
    assert "the average of the last 5 checkpoints of each" in table[-1]


def test_table_goes_between_the_markers_and_nowhere_else(tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text(f"# T\n\n{results.BEGIN}\nold\n{results.END}\n\nend\n", encoding="utf-8")
    assert results.put_into(readme, "| new |")
    expected = f"# T\n\n{results.BEGIN}\n| new |\n{results.END}\n\nend\n"
    assert readme.read_text(encoding="utf-8") == expected
    assert results.block_of(readme) == "| new |"
    assert not results.put_into(readme, "| new |")


def test_a_recipe_publishes_several_results_each_in_its_own_place(tmp_path):
    readme = tmp_path / "README.md"
    other = "<!-- checkpoints: begin -->\nold\n<!-- checkpoints: end -->\n"
    readme.write_text(f"{results.BEGIN}\nold\n{results.END}\n{other}", encoding="utf-8")
    results.publish(tmp_path, {"a": 1}, "| own |")
    assert results.block_of(readme, "checkpoints") == "old"
    results.publish(tmp_path, {"b": 2}, "| given |", "checkpoints")
    assert results.block_of(readme) == "| own |"
    assert results.block_of(readme, "checkpoints") == "| given |"
    assert json.loads((tmp_path / "results.json").read_text(encoding="utf-8")) == {"a": 1}
    assert json.loads((tmp_path / "checkpoints.json").read_text(encoding="utf-8")) == {"b": 2}


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


def test_blocks_of_other_names_show_what_is_committed():
    blocks = tables.named_blocks()
    assert {name for readme, name in blocks if readme == first_page.README} == {"choices"}
    for (readme, name), block in blocks.items():
        assert results.block_of(readme, name) == block


def test_the_picture_of_the_first_page_is_of_the_committed_results():
    pytest.importorskip("matplotlib")
    for name, text in first_page.pictures().items():
        path = first_page.RESULTS.parent / "pictures" / name
        assert path.read_text(encoding="utf-8") == text
