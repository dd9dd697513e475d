"""Tables in Markdown."""

from hyptrans.support import tables


def test_numbers_are_on_the_right_and_what_is_missing_is_empty():
    shown = tables.markdown(["model", "of", "BLEU"], [["a", "b", 1.5], ["c", "d", None]], texts=2)
    assert shown.splitlines() == [
        "| model | of | BLEU |",
        "| --- | --- | ---: |",
        "| a | b | 1.5 |",
        "| c | d |  |",
    ]
