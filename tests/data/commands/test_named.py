"""``hyptrans prepare iwslt14`` and ``wmt14`` do what fairseq's scripts do."""

import gzip
import html
import re
import tarfile
import threading
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from hyptrans.data.commands.named import IWSLT14
from hyptrans.data.sources.files import READERS
from hyptrans.support.files import whole_file
from tests.data.conftest import encoded, error_of, make_sentences, manifest_of, write

COUNTS = {
    **{"TED.dev2010": 887, "TEDX.dev2012": 1165, "TED.tst2010": 1565},
    **{"TED.tst2011": 1433, "TED.tst2012": 1700},
}
SMALL = ["--vocab-size", 80, "--workers", 1]


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


def segments(path, lines):
    rows = ['<?xml version="1.0"?>', '<srcset setid="x">', '<doc docid="1">', "<title>no</title>"]
    rows += [f'<seg id="{number}"> {line} </seg>' for number, line in enumerate(lines, 1)]
    return write(path, [*rows, "</doc>", "</srcset>"])


def iwslt_tree(folder):
    """A small tree of the archive's shape, generated."""
    for lang in ("de", "en"):
        tag_file(folder / f"train.tags.de-en.{lang}", make_sentences(230, lang))
        for seed, name in enumerate(COUNTS, 1):
            lines = [*make_sentences(seed, lang, seed), f"R&D <{lang}> isn\u2019t"]
            lines = [html.escape(line, quote=False) for line in lines]
            segments(folder / f"IWSLT14.{name}.de-en.{lang}.xml", lines)
    return folder


@pytest.fixture
def iwslt(tmp_path):
    return iwslt_tree(tmp_path / "de-en").parent


@pytest.fixture
def wmt(tmp_path):
    """The unpacked archives with generated text; 250 training pairs."""
    folder = tmp_path / "wmt"
    sizes = {"europarl-v7": 100, "commoncrawl": 100, "news-commentary-v12": 50}
    for lang in ("en", "de"):
        for seed, (name, size) in enumerate(sizes.items()):
            write(folder / f"training/{name}.de-en.{lang}", make_sentences(size, lang, seed))
        for year, name in ((2013, "newstest2013"), (2014, "newstest2014-deen")):
            lines = make_sentences(year - 2000, lang, year)
            lines[0] = "„It\u2019s“ a state-of-the-art R&D &amp; more"
            for kind in ("src", "ref"):
                segments(folder / f"dev/{name}-{kind}.{lang}.sgm", lines)
    return folder


def lines_of(path):
    return path.read_text().split("\n")[:-1]


def add(path, lines):
    path.write_text(path.read_text() + "".join(f"{line}\n" for line in lines))


def made(run, name, raw, out, *more):
    """The steps of a finished run."""
    status, _, err = run(name, "--raw", raw, "--out", out, *SMALL, *more)
    assert status == 0, err
    manifest = manifest_of(out)
    assert manifest["command"][0] == name
    return manifest["steps"]


def test_real_iwslt_test_sets_have_6750_pairs(tmp_path, data, run):
    for path in (data / "iwslt14_de_en_orig").glob("*.xml.gz"):
        (tmp_path / path.name).symlink_to(path)
    for lang in ("de", "en"):
        tag_file(tmp_path / f"train.tags.de-en.{lang}", make_sentences(300, lang))
    out = tmp_path / "out"
    steps = made(run, "iwslt14", tmp_path, out, "--raw-text", "--vocab-size", 200)
    assert steps["read test"]["pairs"] == 6750
    assert not any(name.startswith("tokenize") for name in steps)
    assert [len(lines_of(out / f"raw/test.{lang}")) for lang in ("de", "en")] == [6750] * 2


def test_real_newstest2014_has_3003_pairs(tmp_path, data, run, wmt):
    for path in (wmt / "dev").glob("newstest2014*"):
        path.unlink()
    for path in (data / "wmt14_newstest2014").glob("*.gz"):
        (wmt / path.name).symlink_to(path)
    out = tmp_path / "out"
    assert made(run, "wmt14", wmt, out)["read test"]["pairs"] == 3003
    for lang in ("en", "de"):
        assert len(lines_of(out / f"raw/test.{lang}")) == len(encoded(out, "test", lang)) == 3003
    assert lines_of(out / "raw/test.en")[0] == "Gutach: Increased safety for pedestrians"


@pytest.mark.parametrize("lang", ["de", "en"])
def test_xml_reader_agrees_with_the_line_tools_of_the_script(data, lang):
    for name, count in COUNTS.items():
        path = data / "iwslt14_de_en_orig" / f"IWSLT14.{name}.de-en.{lang}.xml.gz"
        text = gzip.decompress(path.read_bytes()).decode()
        lines = [line for line in text.split("\n") if "<seg id" in line]
        lines = [re.sub(r'<seg id="[0-9]*">\s*', "", line) for line in lines]
        expected = [re.sub(r"\s*</seg>\s*", "", line) for line in lines]
        assert [html.escape(seg, quote=False) for seg in READERS["xml"](path)] == expected
        assert len(expected) == count


def test_every_23rd_pair_of_the_known_number_gives_the_known_split(
    tmp_path, run, iwslt, monkeypatch
):
    """fairseq's script makes 160,239 and 7,283 pairs of the real text."""
    for lang, last in (("de", ""), ("en", "lonely")):
        lines = [f"{lang} {number} ." for number in range(160_239 + 7_283)]
        write(iwslt / f"de-en/train.tags.de-en.{lang}", [*lines, last])
    out = tmp_path / "out"
    monkeypatch.setattr("hyptrans.data.learn.learn", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run("iwslt14", "--raw", iwslt, "--raw-text", "--out", out)
    for lang in ("de", "en"):
        train, valid = (
            lines_of(out / f"intermediate/clean/{name}.{lang}") for name in ("train", "valid")
        )
        assert (len(train), len(valid)) == (160_239, 7_283)
        assert valid[:2] == [f"{lang} 22 .", f"{lang} 45 ."]
        assert train[21:23] == [f"{lang} 21 .", f"{lang} 23 ."]


def test_iwslt_steps_match_the_script(tmp_path, run, iwslt):
    long = "w " * 176
    added = {"de": ["eins zwei", long, "A B", "Gut"], "en": ["One", long, "a b", ""]}
    for lang, lines in added.items():
        add(iwslt / f"de-en/train.tags.de-en.{lang}", lines)
    out = tmp_path / "out"
    steps = made(run, "iwslt14", iwslt, out, "--keep-intermediate")
    # titles and descriptions are text
    assert steps["read train"]["pairs"] == 230 + 2 * 23 + 4
    dropped = steps["clean train"]["dropped"]
    assert dropped["longer than 175"] == dropped["empty side"] == 1
    assert dropped["ratio above 1.5"] >= 1
    kept = steps["clean train"]["train"] + steps["clean train"]["valid"]
    assert kept + sum(dropped.values()) == steps["read train"]["pairs"]
    assert steps["clean train"]["valid"] == kept // 23
    text = (out / "intermediate/clean/train.en").read_text()
    assert "title of 0" in text
    assert "<" not in text
    assert text == text.lower()
    # the script's tokenizer sees the entities of the XML, the references do not
    tokenized = lines_of(out / "intermediate/text/test.en")[1]
    assert tokenized == "r &amp; amp ; d &amp; lt ; en &amp; gt ; isn &apos;t"
    raw = lines_of(out / "raw/test.en")
    assert raw[1] == "R&D <en> isn\u2019t"
    # the last lines of one, two … five sentences and another, in the order of the sets
    assert [i for i, line in enumerate(raw) if line == raw[1]] == [1, 4, 8, 13, 19]


def test_wmt_steps_match_the_script(tmp_path, run, wmt):
    for lang, line in (("en", "“Quote” \u2013 it\u2019s a well-known 5\u00a0%"), ("de", "„Ja“")):
        add(wmt / f"training/europarl-v7.de-en.{lang}", [line])
    out = tmp_path / "out"
    steps = made(run, "wmt14", wmt, out, "--keep-intermediate")
    assert [steps[f"read {name}"]["pairs"] for name in ("train", "test", "test1")] == [251, 14, 13]
    # every 100th pair is held out, nothing is dropped before subwords, then by their number
    clean = {"name": "clean train", "train": 249, "valid": 2, "dropped": {}}
    assert steps["clean train"] == clean
    work = out / "intermediate"
    sides = [lines_of(work / f"encoded/train.{lang}") for lang in ("en", "de")]
    sizes = [(len(one.split()), len(other.split())) for one, other in zip(*sides, strict=True)]
    wrong = sum(max(pair) / min(pair) > 1.5 for pair in sizes)
    assert 0 < wrong < 100
    assert steps["clean train subwords"]["dropped"] == {"ratio above 1.5": wrong}
    assert steps["clean train subwords"]["train"] == 249 - wrong
    assert "clean valid subwords" in steps
    assert "clean test subwords" not in steps
    train = lines_of(work / "text/train.en")
    assert train[100] == "&quot; Quote &quot; - it &apos;s a well @-@ known 5 %"
    assert lines_of(work / "clean/valid.en")[:2] == [train[99], train[199]]
    expected = "„ It &apos;s “ a state @-@ of @-@ the @-@ art R &amp; D &amp; amp ; more"
    assert lines_of(work / "text/test.en")[0] == expected
    assert lines_of(out / "raw/test.en")[0] == "„It\u2019s“ a state-of-the-art R&D &amp; more"


def test_reversed_direction_has_the_german_source(tmp_path, run, wmt):
    # the sentences of a source and of a reference of one language differ
    source = wmt / "dev/newstest2014-deen-src.de.sgm"
    source.write_text(re.sub(r">([^<>]+)</seg>", r">Quelle: \1</seg>", source.read_text()))
    out = tmp_path / "out"
    made(run, "wmt14", wmt, out, "--source-lang", "de")
    lines = lines_of(out / "raw/test.de")
    assert len(lines) == 14
    assert all(line.startswith("Quelle: ") for line in lines)
    assert manifest_of(out)["languages"] == ["de", "en"]


def test_missing_files_segments_and_bad_options_are_reported(tmp_path, run, iwslt):
    words = ["iwslt14", "--out", tmp_path / "out", "--raw"]
    path = iwslt / "de-en/IWSLT14.TED.tst2012.de-en.en.xml"
    path.write_text(re.sub(r'<seg id="3">.*\n', "", path.read_text()))
    differ = r"differ in length: .*en\.xml ends after line 5, and .*de\.xml continues"
    assert re.search(differ, error_of(run(*words, iwslt, *SMALL)))
    for name in ("train.tags.de-en.en", "IWSLT14.TED.tst2011.de-en.de.xml"):
        (iwslt / "de-en" / name).unlink()
    missing = "train.tags.de-en.en, IWSLT14.TED.tst2011.de-en.de.xml"
    assert missing in error_of(run(*words, iwslt))
    (tmp_path / "nowhere").touch()
    wrong = error_of(
        run(*words, tmp_path / "nowhere", "--source-lang", "fr", "--target-lang", "en")
    )
    assert "unknown language pair fr-en: this data set has de-en and en-de" in wrong
    assert f"--raw {tmp_path / 'nowhere'} is not a folder" in wrong


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder from which the archive of IWSLT14 is downloaded."""
    folder = tmp_path / "site"
    folder.mkdir()
    handler = partial(SimpleHTTPRequestHandler, directory=folder)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    found = replace(IWSLT14, urls=[f"http://127.0.0.1:{server.server_port}/de-en.tgz"])
    monkeypatch.setattr("hyptrans.data.commands.named.IWSLT14", found)
    yield folder
    server.shutdown()
    server.server_close()


@pytest.mark.skipif(not hasattr(tarfile, "data_filter"), reason="Python before 3.11.4")
def test_archives_are_downloaded_into_a_new_folder(tmp_path, run, iwslt, site):
    raw, out = tmp_path / "new", tmp_path / "out"
    words = ("iwslt14", "--raw", raw, "--out", out, "--raw-text", *SMALL)
    wrong = error_of(run(*words))
    assert "de-en.tgz cannot be downloaded (HTTP Error 404: File not found): run again, or" in wrong
    archive = site / "de-en.tgz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(iwslt / "de-en", "de-en")
    whole = archive.read_bytes()
    archive.write_bytes(whole[: len(whole) // 2])
    wrong = error_of(run(*words))
    assert f"{raw}.partial/de-en.tgz cannot be unpacked (" in wrong
    assert "): delete it and run again" in wrong
    assert not raw.exists()
    (tmp_path / "new.partial/de-en.tgz").unlink()
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(iwslt / "de-en", "../outside")
    assert "outside the destination" in error_of(run(*words))
    (tmp_path / "new.partial/de-en.tgz").unlink()
    (tmp_path / "zeros").write_bytes(bytes(20 << 20))
    for files in (["zeros"], ["de-en"] * 10_001):
        with tarfile.open(archive, "w:gz") as tar:
            for name in files:
                tar.add(tmp_path / name, recursive=False)
        assert "it unpacks to suspiciously many bytes or files" in error_of(run(*words))
        (tmp_path / "new.partial/de-en.tgz").unlink()
    archive.write_bytes(whole)
    assert run(*words)[0] == 0
    made(run, "iwslt14", iwslt, tmp_path / "same", "--raw-text")
    for lang in ("de", "en"):
        path = f"raw/test.{lang}"
        assert (out / path).read_bytes() == (tmp_path / "same" / path).read_bytes()


def test_output_folder_is_checked_before_a_download(tmp_path, run, iwslt, site):
    out, raw = tmp_path / "out", tmp_path / "new"
    words = ("iwslt14", "--raw", raw, "--out", out, "--raw-text", *SMALL)
    (out / "raw").mkdir(parents=True)
    (out / "raw/mine.txt").write_text("mine")
    assert f"{out}/raw/mine.txt was not made by this command" in error_of(run(*words))
    made(run, "iwslt14", iwslt, tmp_path / "done", "--raw-text")
    words = ("iwslt14", "--raw", raw, "--out", tmp_path / "done")
    assert "done is finished; choose another --out, or --overwrite" in error_of(run(*words))
    # the next check, and on an old Python the one before it
    safe = hasattr(tarfile, "data_filter")
    later = "cannot be downloaded" if safe else "this Python is too old to unpack safely"
    assert later in error_of(run(*words, "--overwrite"))


@pytest.mark.skipif(not hasattr(tarfile, "data_filter"), reason="Python before 3.11.4")
def test_neither_a_second_download_nor_a_broken_link_is_written(tmp_path, run, site):
    (site / "de-en.tgz").touch()
    raw = tmp_path / "new"
    words = ("iwslt14", "--raw", raw, "--out", tmp_path / "out", "--raw-text", *SMALL)
    with whole_file(tmp_path / "new.partial/de-en.tgz"):
        wrong = error_of(run(*words))
    assert wrong.endswith("de-en.tgz; wait for it or stop it"), wrong
    raw.symlink_to(tmp_path / "nowhere")
    assert f"--raw {raw} is not a folder" in error_of(run(*words))
