import re

import pytest

from hyptrans.data import subwords
from hyptrans.data.commands.wmt14 import _WMT14
from tests.data.conftest import encoded, error_of, make_sentences, manifest_of, tree, write

SMALL = ["--vocab-size", 80, "--workers", 1]
CORPORA = ("europarl-v7", "commoncrawl", "news-commentary-v12")


def sgml_file(path, lines):
    rows = ['<srcset setid="x" srclang="any">', '<doc docid="a" genre="news">']
    rows += [f'<seg id="{number}">{line}</seg>' for number, line in enumerate(lines, 1)]
    return write(path, [*rows, "</doc>", "</srcset>"])


@pytest.fixture
def original(tmp_path):
    """The unpacked archives with generated text; 250 training pairs with News Commentary v12."""
    folder = tmp_path / "wmt"
    for lang in ("en", "de"):
        for seed, name in enumerate(CORPORA):
            size = (100, 100, 50)[seed]
            write(folder / f"training/{name}.de-en.{lang}", make_sentences(size, lang, seed))
        for year, name in ((2013, "newstest2013"), (2014, "newstest2014-deen")):
            lines = make_sentences(year - 2000, lang, year)
            lines[0] = "„It\u2019s“ a state-of-the-art R&D &amp; more"
            for kind in ("src", "ref"):
                sgml_file(folder / f"dev/{name}-{kind}.{lang}.sgm", lines)
    return folder


def test_real_newstest2014_has_3003_pairs(tmp_path, data, run, original):
    for path in (original / "dev").glob("newstest2014*"):
        path.unlink()
    for path in (data / "wmt14_newstest2014").glob("*.gz"):
        (original / path.name).symlink_to(path)
    out = tmp_path / "out"
    status, _, err = run("wmt14", "--raw", original, "--out", out, *SMALL)
    assert status == 0, err
    steps = manifest_of(out)["steps"]
    assert steps["read test"]["pairs"] == 3003
    for lang in ("en", "de"):
        assert (out / f"raw/test.{lang}").read_bytes().count(b"\n") == 3003
        assert len(encoded(out, "test", lang)) == 3003
    first = "Gutach: Increased safety for pedestrians"
    assert (out / "raw/test.en").read_text().split("\n")[0] == first


def test_sets_and_steps_match_the_script(tmp_path, run, original):
    for lang, line in (("en", "“Quote” \u2013 it\u2019s a well-known 5\u00a0%"), ("de", "„Ja“")):
        path = original / f"training/europarl-v7.de-en.{lang}"
        path.write_text(path.read_text() + line + "\n")
    out = tmp_path / "out"
    assert run("wmt14", "--raw", original, "--out", out, *SMALL, "--keep-intermediate")[0] == 0
    steps = manifest_of(out)["steps"]
    assert [steps[f"read {name}"]["pairs"] for name in ("train", "test", "test1")] == [251, 14, 13]
    # every 100th pair is held out, nothing is dropped before subwords, then by their number
    clean = {"name": "clean train", "train": 249, "valid": 2, "dropped": {}}
    assert steps["clean train"] == clean
    encoded = [
        (out / f"intermediate/encoded/train.{lang}").read_text().split("\n")[:-1]
        for lang in ("en", "de")
    ]
    sizes = [(len(one.split()), len(other.split())) for one, other in zip(*encoded, strict=True)]
    wrong = sum(max(pair) / min(pair) > 1.5 for pair in sizes)
    assert 0 < wrong < 100
    assert steps["clean train subwords"]["dropped"] == {"ratio above 1.5": wrong}
    assert steps["clean train subwords"]["train"] == 249 - wrong
    assert "clean valid subwords" in steps
    assert "clean test subwords" not in steps
    train = (out / "intermediate/text/train.en").read_text().split("\n")
    assert train[100] == "&quot; Quote &quot; - it &apos;s a well @-@ known 5 %"
    valid = (out / "intermediate/clean/valid.en").read_text().split("\n")
    assert valid[:2] == [train[99], train[199]]
    test = (out / "intermediate/text/test.en").read_text().split("\n")[0]
    expected = "„ It &apos;s “ a state @-@ of @-@ the @-@ art R &amp; D &amp; amp ; more"
    assert test == expected
    assert (out / "raw/test.en").read_text().startswith("„It\u2019s“ a state-of-the-art R&D &amp;")


def test_reversed_direction_has_the_german_source(tmp_path, run, original):
    # the sentences of a source and of a reference of one language differ
    source = original / "dev/newstest2014-deen-src.de.sgm"
    marked = re.sub(r">([^<>]+)</seg>", r">Quelle: \1</seg>", source.read_text())
    source.write_text(marked)
    out = tmp_path / "out"
    assert run("wmt14", "--raw", original, "--out", out, *SMALL, "--source-lang", "de")[0] == 0
    lines = (out / "raw/test.de").read_text().splitlines()
    assert len(lines) == 14
    assert all(line.startswith("Quelle: ") for line in lines)


def test_a_finished_folder_of_another_command_is_refused(tmp_path, run, original, monkeypatch):
    out = tmp_path / "out"
    words = ["--raw", original, "--out", out, *SMALL]
    assert run("wmt14", *words)[0] == 0
    before = tree(out)
    # the same options and inputs, under another command's name
    monkeypatch.setitem(vars(_WMT14), "name", "iwslt14")
    assert "is finished, with other options or input" in error_of(run("wmt14", *words))
    assert tree(out) == before


def test_raw_text_skips_the_moses_steps(tmp_path, run, original):
    out = tmp_path / "out"
    words = ["--raw", original, "--out", out, "--raw-text", "--vocab-size", 200]
    words.append("--keep-intermediate")
    assert run("wmt14", *words)[0] == 0
    steps = manifest_of(out)["steps"]
    assert not any(name.startswith("tokenize") for name in steps)
    pieces = (out / "intermediate/encoded/test.de").read_text().split("\n")[:-1]
    back = [subwords.decode("sentencepiece", line) for line in pieces]
    assert back == (out / "raw/test.de").read_text().split("\n")[:-1]
