"""What the training text has, as dictionaries know it."""

from hyptrans.dataprep.steps.seen import take_inventory


def test_a_word_that_training_never_cut_can_be_spelled_out(tmp_path):
    text, encoded = tmp_path / "text", tmp_path / "encoded"
    text.write_text("the dog\n")
    encoded.write_text("\u2581the \u2581dog\n", encoding="utf-8")
    files = [tmp_path / f"{name}.en" for name in ("characters", "pieces", "dict")]
    assert take_inventory([["en"]], {"en": text}, {"en": encoded}, files) == {"characters en": 6}
    symbols = {line.split()[0] for line in files[2].read_text(encoding="utf-8").splitlines()}
    # a new word begins with the mark of a word, which no line has alone
    assert {"\u2581the", "\u2581dog", "\u2581", *"thedog"} <= symbols
    assert "\u2581" not in files[0].read_text(encoding="utf-8")
