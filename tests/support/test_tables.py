"""Tables in Markdown."""

from hyptrans.support import tables


def test_table_aligns_numbers_right_and_leaves_missing_cells_empty():
    shown = tables.markdown(["model", "of", "BLEU"], [["a", "b", 1.5], ["c", "d", None]], texts=2)
    assert shown.splitlines() == [
        "| model | of | BLEU |",
        "| --- | --- | ---: |",
        "| a | b | 1.5 |",
        "| c | d |  |",
    ]
