import gzip
import html
import re
import tarfile

import pytest

from hyptrans.data.commands import named
from hyptrans.data.sources.files import xml_segments
from tests.data.conftest import error_of, make_sentences, manifest_of, needs_filter, tree, write

COUNTS = {
    "TED.dev2010": 887,
    "TEDX.dev2012": 1165,
    "TED.tst2010": 1565,
    "TED.tst2011": 1433,
    "TED.tst2012": 1700,
}
SMALL = ["--vocab-size", 60, "--workers", 1]


def tag_file(path, lines):
    """A train.tags file: a talk every ten lines, with all the tags there are."""
    rows = []
    for number, line in enumerate(lines):
        if number % 10 == 0:
            rows += [f"<url>http://talks/{number}</url>", "<keywords>talk, text</keywords>"]
            rows += [f"<talkid>{number}</talkid>", f"<title>Title of {number}</title>"]
            rows += [f"<description>Talk: {line}</description>"]
        rows.append(line)
    return write(path, rows)


def xml_file(path, lines):
    rows = ['<?xml version="1.0" encoding="UTF-8"?>', "<mteval>", '<srcset setid="x">']
    rows += ['<doc docid="1" genre="lectures">', "<title>not a segment</title>"]
    rows += [f'<seg id="{n}"> {html.escape(x, quote=False)} </seg>' for n, x in enumerate(lines, 1)]
    return write(path, [*rows, "</doc>", "</srcset>", "</mteval>"])


def corpus(folder):
    """A small tree of the archive's shape, generated."""
    for lang in ("de", "en"):
        tag_file(folder / f"train.tags.de-en.{lang}", make_sentences(230, lang))
        for seed, name in enumerate(COUNTS, 1):
            lines = [*make_sentences(seed, lang, seed), f"R&D <{lang}> isn\u2019t"]
            xml_file(folder / f"IWSLT14.{name}.de-en.{lang}.xml", lines)
    return folder


@pytest.fixture
def original(tmp_path):
    return corpus(tmp_path / "de-en").parent


def test_real_sets_have_the_known_numbers_of_pairs(tmp_path, data, run):
    folder = data / "iwslt14_de_en_orig"
    for path in folder.glob("*.xml.gz"):
        (tmp_path / path.name).symlink_to(path)
    for lang in ("de", "en"):
        tag_file(tmp_path / f"train.tags.de-en.{lang}", make_sentences(300, lang))
    out = tmp_path / "out"
    options = ["--raw-text", "--vocab-size", 200, "--workers", 1]
    status, _, err = run("iwslt14", "--raw", tmp_path, "--out", out, *options)
    assert status == 0, err
    assert manifest_of(out)["steps"]["read test"]["pairs"] == 6750
    for lang in ("de", "en"):
        assert (out / f"raw/test.{lang}").read_bytes().count(b"\n") == 6750


@pytest.mark.parametrize("lang", ["de", "en"])
def test_xml_reader_agrees_with_the_line_tools_of_the_script(data, lang):
    for name, count in COUNTS.items():
        path = data / "iwslt14_de_en_orig" / f"IWSLT14.{name}.de-en.{lang}.xml.gz"
        text = gzip.decompress(path.read_bytes()).decode()
        lines = [line for line in text.split("\n") if "<seg id" in line]
        lines = [re.sub(r'<seg id="[0-9]*">\s*', "", line) for line in lines]
        expected = [re.sub(r"\s*</seg>\s*", "", line) for line in lines]
        assert [html.escape(seg, quote=False) for seg in xml_segments(path)] == expected
        assert len(expected) == count


def test_every_23rd_pair_of_the_known_number_gives_the_known_split(
    tmp_path, run, original, monkeypatch
):
    """fairseq's script makes 160,239 and 7,283 pairs of the real text."""
    for lang in ("de", "en"):
        # a pair to drop at the end
        lines = [f"{lang} {number} ." for number in range(160_239 + 7_283)]
        lines.append("" if lang == "de" else "lonely")
        write(original / f"de-en/train.tags.de-en.{lang}", lines)
    out = tmp_path / "out"
    monkeypatch.setattr("hyptrans.data.learn.learn", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run("iwslt14", "--raw", original, "--raw-text", "--out", out)
    for lang in ("de", "en"):
        train, valid = (
            (out / f"intermediate/clean/{name}.{lang}").read_text().split("\n")[:-1]
            for name in ("train", "valid")
        )
        assert (len(train), len(valid)) == (160_239, 7_283)
        assert valid[:2] == [f"{lang} 22 .", f"{lang} 45 ."]
        assert train[21:23] == [f"{lang} 21 .", f"{lang} 23 ."]


def test_steps_match_the_script(tmp_path, run, original):
    long = "w " * 176
    for lang, lines in (
        ("de", ["eins zwei", long, "A B", "Gut"]),
        ("en", ["One", long, "a b", ""]),
    ):
        path = original / f"de-en/train.tags.de-en.{lang}"
        path.write_text(path.read_text() + "".join(line + "\n" for line in lines))
    out = tmp_path / "out"
    words = ["--raw", original, "--out", out, *SMALL, "--keep-intermediate"]
    assert run("iwslt14", *words)[0] == 0
    steps = manifest_of(out)["steps"]
    # titles and descriptions are text
    assert steps["read train"]["pairs"] == 230 + 2 * 23 + 4
    dropped = steps["clean train"]["dropped"]
    assert dropped["longer than 175"] == 1
    assert dropped["empty side"] == 1
    assert dropped["ratio above 1.5"] >= 1
    kept = steps["clean train"]["train"] + steps["clean train"]["valid"]
    assert kept + sum(dropped.values()) == steps["read train"]["pairs"]
    assert steps["clean train"]["valid"] == kept // 23
    text = (out / "intermediate/clean/train.en").read_text()
    assert "title of 0" in text
    assert "<" not in text
    assert text == text.lower()
    # the script's tokenizer sees the entities of the XML, the references do not
    assert (out / "intermediate/text/test.en").read_text().split("\n")[1] == (
        "r &amp; amp ; d &amp; lt ; en &amp; gt ; isn &apos;t"
    )
    assert (out / "raw/test.en").read_text().split("\n")[1] == "R&D <en> isn\u2019t"


def test_both_directions_have_the_same_pairs(tmp_path, run, original):
    for number, pair in enumerate((("de", "en"), ("en", "de"))):
        words = ["--raw", original, "--out", tmp_path / str(number), *SMALL]
        languages = ["--source-lang", pair[0]]
        assert run("iwslt14", *words, *languages)[0] == 0
    outs = [tmp_path / "0", tmp_path / "1"]
    assert manifest_of(outs[1])["languages"] == ["en", "de"]
    raw = [{name: c for name, c in tree(out).items() if name.startswith("raw/")} for out in outs]
    assert raw[0] == raw[1]


@pytest.fixture
def archive(tmp_path, original):
    path = tmp_path / "de-en.tgz"
    with tarfile.open(path, "w:gz") as tar:
        tar.add(original / "de-en", "de-en")
    return path


@needs_filter
def test_archive_and_unpacked_tree_give_the_same_data(tmp_path, run, original, archive):
    sources = {"raw": ["--raw", original], "archive": ["--archive", archive]}
    for name, words in sources.items():
        assert run("iwslt14", *words, "--out", tmp_path / name, *SMALL)[0] == 0
    trees = [tree(tmp_path / name) for name in sources]
    for content in trees:
        del content["manifest.json"]
    assert trees[0] == trees[1]


@needs_filter
def test_a_changed_archive_is_unpacked_again(tmp_path, run, original, archive, monkeypatch):
    out = tmp_path / "out"
    words = ["--archive", archive, "--out", out, *SMALL, "--keep-intermediate"]
    with monkeypatch.context() as patch:
        patch.setattr("hyptrans.data.learn.learn", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run("iwslt14", *words)
    path = original / "de-en/IWSLT14.TED.tst2012.de-en.en.xml"
    path.write_text(path.read_text().replace("R&amp;D", "Q&amp;A"))
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(original / "de-en", "de-en")
    assert run("iwslt14", *words)[0] == 0
    assert "Q&A" in (out / "raw/test.en").read_text()


@needs_filter
def test_downloads_are_kept_and_unpacked(tmp_path, run, archive, monkeypatch):
    fetched = []

    def download(url, path):
        fetched.append(url)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(archive.read_bytes())

    monkeypatch.setattr(named, "download", download)
    out = tmp_path / "out"
    words = ["--out", out, *SMALL]
    assert run("iwslt14", *words)[0] == 0
    assert (out / "downloads/de-en.tgz").is_file()
    assert "nothing to do" in run("iwslt14", *words)[1]
    assert run("iwslt14", *words, "--joined-dictionary", "--overwrite")[0] == 0
    assert fetched == ["https://dl.fbaipublicfiles.com/fairseq/data/iwslt14/de-en.tgz"]


def test_error_names_all_missing_files(tmp_path, run, original):
    for name in ("train.tags.de-en.en", "IWSLT14.TED.tst2011.de-en.de.xml"):
        (original / "de-en" / name).unlink()
    message = error_of(run("iwslt14", "--raw", original, "--out", tmp_path / "out"))
    assert "train.tags.de-en.en, IWSLT14.TED.tst2011.de-en.de.xml" in message


def test_a_missing_segment_is_reported(tmp_path, run, original):
    path = original / "de-en/IWSLT14.TED.tst2012.de-en.en.xml"
    path.write_text(re.sub(r'<seg id="3">.*\n', "", path.read_text()))
    message = error_of(run("iwslt14", "--raw", original, "--out", tmp_path / "out", *SMALL))
    assert re.search(
        r"differ in length: .*en\.xml ends after line 5, and .*de\.xml continues", message
    )


def test_bad_options_are_reported_at_once(tmp_path, run):
    words = ["--source-lang", "fr", "--target-lang", "en", "--raw", "nowhere"]
    message = error_of(run("iwslt14", *words, "--out", tmp_path))
    for part in (
        "unknown language pair fr-en: this data set has de-en and en-de",
        "--raw nowhere is not a folder",
    ):
        assert part in message
