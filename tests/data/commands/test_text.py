import re

import pytest
import sentencepiece

from hyptrans.data import learn, manifest, subwords
from tests.data.conftest import (
    encoded,
    error_of,
    every_set,
    make_sentences,
    manifest_of,
    pair,
    symbols_of,
    tree,
    write,
)

RAW = ["--raw-text", "--vocab-size", 200]


def test_sentencepiece_round_trips_raw_text_exactly(tmp_path, prepare):
    tricky = [
        "  two  spaces, and one at the end ",
        "zero\u200bwidth, soft\u00adhyphen, caf\u0065\u0301, \U0001f600 @@ &amp; <b>",
        "<s> <pad> </s> <unk> <unk",
    ]
    train = make_sentences(300, "en") + tricky * 3
    sets = {"train": train, "valid": train[:9], "test": [*tricky, *train[:9]]}
    words = [
        w for name, lines in sets.items() for w in (f"--{name}", *pair(tmp_path / name, lines))
    ]
    out = tmp_path / "out"
    prepare(*words, *RAW, "--out", out, "--keep-intermediate")
    model = sentencepiece.SentencePieceProcessor(model_file=str(out / "sentencepiece.model"))
    vocabulary = set(symbols_of(out, "en"))
    lines = encoded(out, "test", "en")
    for line, pieces in zip([*tricky, *train[:9]], lines, strict=True):
        assert model.decode(pieces.split()) == line
        assert subwords.decode("sentencepiece", pieces) == line
        # nothing that fairseq would read as padding, as an end, or as unknown
        assert set(pieces.split()) <= vocabulary - {"<s>", "<pad>", "</s>", "<unk>"}


def test_pieces_unseen_on_one_side_are_spelled_out_in_its_test_set(tmp_path, prepare):
    # a word of the German training text in the English test set
    english = make_sentences(300, "en")
    german = [f"{line} dagebliebens" for line in make_sentences(300, "de")]
    train = pair(tmp_path / "train", english, german)
    test = pair(tmp_path / "test", ["dagebliebens"] * 2)
    sets, out = ["--train", *train, "--valid", *test, "--test", *test], tmp_path / "out"
    prepare(*sets, "--raw-text", "--vocab-size", 400, "--out", out)
    pieces = {lang: encoded(out, "test", lang)[0] for lang in ("en", "de")}
    assert "\u2581dagebliebens" in pieces["de"].split()
    assert "\u2581dagebliebens" not in pieces["en"].split()
    assert set(pieces["en"].split()) <= set(symbols_of(out, "en"))


def test_bpe_round_trips_tokenized_text(tmp_path, prepare, corpus):
    out = tmp_path / "out"
    prepare(*corpus(), "--vocab-size", 100, "--lowercase", "--keep-intermediate", "--out", out)
    for lang in ("en", "de"):
        tokens = (out / f"intermediate/text/test.{lang}").read_text()
        lines = encoded(out, "test", lang)
        assert any("@@ " in line for line in lines)
        back = "".join(line.replace("@@ ", "") + "\n" for line in lines)
        assert back == tokens == tokens.lower()
        assert (out / f"raw/test.{lang}").read_text() != tokens


def test_dictionaries_have_every_character_and_a_round_size(tmp_path, prepare, corpus):
    prepare(*corpus(), *RAW, "--out", tmp_path / "single")
    prepare(*corpus(), *RAW, "--joined-dictionary", "--out", tmp_path / "joined")
    single, joined = tmp_path / "single/data-bin", tmp_path / "joined/data-bin"
    rows = [line.split(" ") for line in (single / "dict.en.txt").read_text().splitlines()]
    counts = [int(count) for _, count in rows]
    assert counts == sorted(counts, reverse=True)
    assert (len(rows) + 4) % 8 == 0
    characters = set("".join(make_sentences(200, "en"))) - {" "}
    # a new word that training never cut begins with the mark of a word
    assert characters | {"\u2581"} <= {piece for piece, _ in rows}
    assert (joined / "dict.de.txt").read_bytes() == (joined / "dict.en.txt").read_bytes()
    assert (joined / "dict.en.txt").read_bytes() != (single / "dict.en.txt").read_bytes()


@pytest.mark.parametrize(
    "options", [["--vocab-size", 150], pytest.param(RAW, marks=pytest.mark.slow)]
)
def test_output_does_not_depend_on_the_workers(tmp_path, prepare, corpus, options):
    words = [*corpus(train=4100), *options]
    for workers in (1, 2):
        prepare(*words, "--workers", workers, "--out", tmp_path / f"out{workers}")
    assert tree(tmp_path / "out1") == tree(tmp_path / "out2")


def test_manifest_and_summary_report_dropped_pairs(tmp_path, prepare, corpus):
    words = corpus()
    for lang, line in (("en", "one"), ("de", "")):
        path = tmp_path / f"input/train.{lang}"
        path.write_text(path.read_text() + line + "\n")
    out = tmp_path / "out"
    shown = prepare(*words, *RAW, "--out", out)
    record = manifest_of(out)
    steps = record["steps"]
    assert steps["read train"]["pairs"] == 201
    clean = {"name": "clean train", "train": 200, "dropped": {"empty side": 1}}
    assert steps["clean train"] == clean
    assert "clean train: dropped 1 (empty side)\n" in shown
    assert "\ntrain.en: 200 lines, " in shown
    assert len(shown.splitlines()) < 15
    assert set(record["outputs"]) == set(tree(out)) - {"manifest.json"}
    assert {"numpy", "sentencepiece", "sacremoses", "python"} <= set(record["versions"])
    assert all(len(entry["sha256"]) == 64 for entry in record["inputs"].values())
    assert len(record["inputs"]) == 6


@pytest.mark.parametrize(
    ("option", "problem"),
    [
        (["--bpe", "no"], r"--bpe: invalid choice: 'no' \(choose from "),
        (["--workers", "0"], "--workers: '0' is not a whole number above 0"),
        (["--source-lang", "d e"], "--source-lang: 'd e' is not a language code"),
        (["--lowercase", "--raw-text"], "--lowercase and --raw-text exclude each other"),
        (["--target-lang", "en"], "--source-lang and --target-lang are both en"),
        (["--test", "nowhere.en", "nowhere.de"], r"--test: nowhere.en is not a file; --test: now"),
        (["--bpe", "none", "--vocab-size", 300], "--vocab-size goes with subwords, not with --bpe"),
        (["--bpe", "none", "--lowercase"], "--lowercase and --bpe none, which keeps words, excl"),
    ],
)
def test_error_names_a_bad_option(tmp_path, run, corpus, option, problem):
    message = error_of(run("text", *corpus(), *option, "--out", tmp_path / "out"))
    assert re.search(problem, message)
    assert not (tmp_path / "out").exists()


def test_error_names_what_is_missing(tmp_path, run):
    assert error_of(run("text")).endswith(" are required: --out")
    message = error_of(run("text", "--out", tmp_path / "out"))
    assert "--train SOURCE TARGET is required, or --hub NAME; --valid SOURCE TARGET is" in message
    assert "--source-lang and --target-lang are required" in message


@pytest.mark.parametrize("name", ["valid", "test"])
def test_swapped_files_are_detected(tmp_path, run, corpus, name):
    words = corpus()
    at = words.index(f"--{name}")
    words[at + 1 : at + 3] = reversed(words[at + 1 : at + 3])
    message = error_of(run("text", *words, *RAW, "--out", tmp_path / "out"))
    assert f"--{name}: {words[at + 1]} comes first but ends in the target language" in message
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "source"),
    # fairseq parts the languages of a data folder by a hyphen
    [([], "en"), (["--target-lang", "de"], "en"), (["--source-lang", "zh-Hans"], "zh_Hans")],
)
def test_languages_default_to_file_endings(tmp_path, prepare, corpus, options, source):
    out = tmp_path / "out"
    prepare(*corpus(), *RAW, *options, "--out", out)
    assert manifest_of(out)["languages"] == [source, "de"]
    assert (out / f"data-bin/train.{source}-de.{source}.bin").is_file()


@pytest.mark.parametrize(
    "names",
    ["s.txt t.txt", "s.en t.txt", "s.text.gz t.de", "s.tok t.tok", "s.src t.tgt", "s.TXT t.csv"],
)
def test_an_ending_that_is_not_a_language_requires_the_flags(tmp_path, run, prepare, names):
    files = [write(tmp_path / name, make_sentences(60, name)) for name in names.split()]
    words = [*every_set(files, ("train", "valid")), *RAW, "--out", tmp_path / "out"]
    message = error_of(run("text", *words))
    assert "--source-lang and --target-lang are required" in message
    assert f"{files[0]} and {files[1]} do not both end in a language" in message
    prepare(*words, "--source-lang", "en", "--target-lang", "de")


def test_ctrl_c_during_sentencepiece_training_is_reported_as_such(
    tmp_path, run, prepare, corpus, monkeypatch
):
    words = [*corpus(), *RAW, "--out", tmp_path / "out"]
    working, opened = learn.read_lines, []

    def stopped(path):
        opened.append(path)
        for number, line in enumerate(working(path)):
            if (len(opened), number) == (2, 50):
                raise KeyboardInterrupt
            yield line

    monkeypatch.setattr(learn, "read_lines", stopped)
    status, _, err = run("text", *words)
    assert status == 130
    assert err.endswith("\nstopped; the same command continues where it stopped\n")
    assert "error:" not in err
    monkeypatch.setattr(learn, "read_lines", working)
    prepare(*words)


def test_vocabulary_shrinks_to_what_the_text_supports(tmp_path, run, prepare, corpus):
    words = [*corpus(), "--raw-text", "--out", tmp_path / "out"]
    said = "subwords: ([0-9,]+) pieces of sentencepiece, as this text supports no 8,000"
    pieces = re.search(said, prepare(*words))
    model = sentencepiece.SentencePieceProcessor(str(tmp_path / "out/sentencepiece.model"))
    assert f"{len(model):,}" == pieces[1]
    message = error_of(run("text", *words, "--overwrite", "--vocab-size", 3))
    assert "sentencepiece cannot learn --vocab-size 3: Vocabulary size is smaller than" in message


def test_rare_characters_beyond_the_vocabulary_are_symbols_not_pieces(tmp_path, prepare):
    rare = "".join(chr(0x4E00 + i) for i in range(120))
    lines = ["ab " * 400, *("cd " * 400 for _ in range(300)), rare]
    out, sets = tmp_path / "out", every_set(pair(tmp_path / "text", lines), ("train", "valid"))
    sets += ["--test", *pair(tmp_path / "test", ["ab", rare])]
    shown = prepare(*sets, "--raw-text", "--max-length", 900, "--vocab-size", 100, "--out", out)
    assert "the most frequent characters, 99.95 % of the text, are in pieces" in shown
    assert shown.count(" tokens, 0 % unknown\n") == 6
    model = sentencepiece.SentencePieceProcessor(str(out / "sentencepiece.model"))
    symbols, found = set(symbols_of(out, "en")), encoded(out, "test", "en")
    assert [subwords.decode("sentencepiece", line) for line in found] == ["ab", rare]
    assert {*found[1].split()} <= symbols
    assert {model.piece_to_id(character) for character in rare} == {model.unk_id()}


def test_space_separated_words_keep_the_text_and_every_pair(tmp_path, prepare):
    train = ["Emma 's  cat , don't \u2581 &amp; caf\u00e9", "a " * 300 + "b", *["x y"] * 7]
    out = tmp_path / "out"
    prepare(*every_set(pair(tmp_path / "text", train)), "--bpe", "none", "--out", out)
    for name in ("train", "valid", "test"):
        lines = encoded(out, name, "en")
        assert lines == [" ".join(line.split()) for line in train]
        assert [subwords.decode("none", line) for line in lines] == lines
    steps = manifest_of(out)["steps"]
    assert not [name for name in steps if name.startswith(("learn", "tokenize"))]
    assert {path.name for path in out.iterdir()} == {"data-bin", "manifest.json", "raw"}
    found = manifest.read(out)
    assert (found.kind, found.model, found.raw_text) == ("none", None, False)


def test_words_that_collide_with_fairseqs_symbols_are_reported_as_unknown(
    tmp_path, prepare, corpus
):
    odd, out = pair(tmp_path / "odd", ["a <pad> b", "c d"]), tmp_path / "out"
    shown = prepare(*corpus(), "--test", *odd, "--bpe", "none", "--out", out)
    # none of them is padding or an end of sentence
    assert encoded(out, "test1", "en") == ["<unk> <unk> <unk>", "<unk> <unk>"]
    assert "test1.en: 2 lines, 7 tokens, 71.4 % unknown" in shown


def test_a_given_length_limit_drops_training_pairs(tmp_path, run, prepare, corpus):
    longer = pair(tmp_path / "longer", ["a " * 20])
    words = [*corpus(), "--train", *longer, "--bpe", "none", "--out", tmp_path / "out"]
    assert "clean train: dropped 1 (longer than 19)\n" in prepare(*words, "--max-length", 19)
    message = error_of(run("text", *words, "--max-length", 1, "--overwrite"))
    assert "no pair is left for train" in message


def test_a_refused_text_leaves_no_folder_and_no_other_message(tmp_path, run):
    result = run("text", *every_set(pair(tmp_path / "none", [])), "--out", tmp_path / "out")
    assert error_of(result).endswith("none.en is empty")
    assert "warning" not in result[2]
    assert not (tmp_path / "out").exists()
