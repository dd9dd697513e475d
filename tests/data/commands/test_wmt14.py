import pytest

from hyptrans.data import subwords
from hyptrans.data.commands import wmt14
from tests.data.conftest import encoded, make_sentences, manifest_of, write

SMALL = ["--vocab-size", 80, "--workers", 1]
CORPORA = ("europarl-v7", "commoncrawl", "news-commentary-v12", "news-commentary-v9")


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
            size = (100, 100, 50, 70)[seed]
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
    assert steps["read test"]["from"] == {"newstest2014-deen-src.en.sgm.gz": 3003}
    for lang in ("en", "de"):
        assert (out / f"raw/test.{lang}").read_bytes().count(b"\n") == 3003
        assert len(encoded(out, "test", lang)) == 3003
    first = "Gutach: Increased safety for pedestrians"
    assert (out / "raw/test.en").read_text().split("\n")[0] == first


def test_sets_and_steps_are_those_of_the_script(tmp_path, run, original):
    for lang, line in (("en", "“Quote” \u2013 it\u2019s a well-known 5\u00a0%"), ("de", "„Ja“")):
        path = original / f"training/europarl-v7.de-en.{lang}"
        path.write_text(path.read_text() + line + "\n")
    out = tmp_path / "out"
    assert run("wmt14", "--raw", original, "--out", out, *SMALL, "--keep-intermediate")[0] == 0
    steps = manifest_of(out)["steps"]
    assert steps["read train"]["from"] == {
        "europarl-v7.de-en.en": 101,
        "commoncrawl.de-en.en": 100,
        "news-commentary-v12.de-en.en": 50,
    }
    assert [steps[f"read {name}"]["pairs"] for name in ("test", "test1", "valid")] == [14, 13, 13]
    # nothing is dropped before subwords, then by the number of subwords
    assert steps["clean train"] == {"name": "clean train", "train": 251, "dropped": {}}
    encoded = [
        (out / f"intermediate/encoded/train.{lang}").read_text().split("\n")[:-1]
        for lang in ("en", "de")
    ]
    sizes = [(len(one.split()), len(other.split())) for one, other in zip(*encoded, strict=True)]
    wrong = sum(max(pair) / min(pair) > 1.5 for pair in sizes)
    assert 0 < wrong < 100
    assert steps["clean train subwords"]["dropped"] == {"ratio above 1.5": wrong}
    assert steps["clean train subwords"]["kept"] == 251 - wrong
    assert "clean valid subwords" in steps
    assert "clean test subwords" not in steps
    train = (out / "intermediate/text/train.en").read_text().split("\n")[100]
    assert train == "&quot; Quote &quot; - it &apos;s a well @-@ known 5 %"
    test = (out / "intermediate/text/test.en").read_text().split("\n")[0]
    expected = "„ It &apos;s “ a state @-@ of @-@ the @-@ art R &amp; D &amp; amp ; more"
    assert test == expected
    assert (out / "raw/test.en").read_text().startswith("„It\u2019s“ a state-of-the-art R&D &amp;")


def test_every_100th_training_pair_can_be_valid(tmp_path, run, original):
    out = tmp_path / "out"
    words = ["--raw", original, "--out", out, *SMALL, "--keep-intermediate", "--valid-from-train"]
    assert run("wmt14", *words)[0] == 0
    counts = manifest_of(out)["steps"]["clean train"]
    assert (counts["train"], counts["valid"]) == (248, 2)
    text = (out / "intermediate/text/train.de").read_text().split("\n")
    assert (out / "intermediate/clean/valid.de").read_text().split("\n")[:2] == [
        text[99],
        text[199],
    ]


def test_icml17_takes_the_other_news_commentary_and_the_other_direction_the_german_source(
    tmp_path, run, original
):
    out = tmp_path / "out"
    words = ["--icml17", "--source-lang", "de"]
    assert run("wmt14", "--raw", original, "--out", out, *SMALL, *words)[0] == 0
    steps = manifest_of(out)["steps"]
    assert steps["read train"]["from"]["news-commentary-v9.de-en.de"] == 70
    assert "news-commentary-v12.de-en.de" not in steps["read train"]["from"]
    assert steps["read test"]["from"] == {"newstest2014-deen-src.de.sgm": 14}
    assert wmt14.wmt14(icml17=True).urls[2].endswith("nc-v9.tgz")
    assert wmt14.wmt14().urls[2].endswith("nc-v12.tgz")


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
