import io
import sys
import tracemalloc
import zipfile

import pytest

from hyptrans.data.sources import tatoeba
from hyptrans.data.sources.tatoeba import read_table, split
from hyptrans.support.errors import UserError, run_command
from recipes.tatoeba_en_de import prepare
from tests.data.conftest import tree

ROWS = [(f"sentence {number // 3}", f"Satz {number}") for number in range(300)]


def test_sets_share_no_sentence_on_either_side():
    # every sentence has several translations, on both sides
    rows = [(f"sentence {n // 3}", f"Satz {(7 * n) % 40}") for n in range(300)]
    sets, left_out = split(iter(rows), held_out=10, seed=1)
    for side in (0, 1):
        found = [{pair[side] for pair in pairs} for pairs in sets.values()]
        assert sum(map(len, found)) == len(set.union(*found))
    assert [len(sets[name]) for name in ("valid", "test")] == [10, 10]
    # a sentence of the small sets counts once, the training set keeps all other translations
    small = {target for name in ("valid", "test") for _, target in sets[name]}
    known = {source for name in ("valid", "test") for source, _ in sets[name]}
    assert set(sets["train"]) >= {
        row for row in rows if row[0] not in known and row[1] not in small
    }
    assert left_out == 300 - sum(map(len, sets.values()))


def test_split_depends_only_on_the_seed():
    one, two, other = (split(iter(ROWS), held_out=10, seed=seed)[0] for seed in (1, 1, 2))
    assert one == two
    assert one["test"] != other["test"]
    # shuffled: not the first or last sentences of a file sorted by length
    assert one["test"] != ROWS[:30:3]


def test_too_few_sentences_are_refused():
    with pytest.raises(UserError, match="100 distinct source sentences are too few"):
        split(iter(ROWS), held_out=50, seed=1)


def test_a_split_of_another_table_does_not_replace_one_in_use(tmp_path):
    sets, _ = split(iter(ROWS), held_out=10, seed=1)
    for _ in range(2):
        tatoeba.write(sets, tmp_path)
    (tmp_path / "train.de").unlink()  # as if it had been stopped
    tatoeba.write(sets, tmp_path)
    before = tree(tmp_path)
    other, _ = split(iter(ROWS[3:]), held_out=10, seed=1)
    with pytest.raises(
        UserError, match="was split from another table of pairs: choose another --out"
    ):
        tatoeba.write(other, tmp_path)
    assert tree(tmp_path) == before


def test_table_may_be_zipped_and_have_an_author_column(tmp_path):
    content = "\ufeffHi.\tHallo!\r\nGo\u2028on.\tWeiter.\tCC-BY somebody\n".encode()
    plain = tmp_path / "deu.txt"
    plain.write_bytes(content)
    with zipfile.ZipFile(tmp_path / "deu.zip", "w") as archive:
        archive.writestr("deu.txt", content)
    expected = [("Hi.", "Hallo!"), ("Go\u2028on.", "Weiter.")]
    assert list(read_table(plain)) == expected
    assert list(read_table(tmp_path / "deu.zip")) == expected


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is empty"),
        (b"Hi.\tHallo!\nno tab\n", "line 2 has no tab"),
        (b"Hi.\tGr\xfc\xdfe\n", "line 1: byte 0xfc"),
    ],
)
def test_a_bad_table_gives_a_one_sentence_error(tmp_path, content, problem):
    path = tmp_path / "deu.txt"
    path.write_bytes(content)
    with pytest.raises(UserError, match=problem):
        list(read_table(path))


CENTRAL = b"PK\1\2"
"""Signature of a member's header in the central directory."""


def zipped(content, method=zipfile.ZIP_DEFLATED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr("deu.txt", content)
    return file.getvalue()


DAMAGES = {
    "another member": lambda data: data.replace(b"deu.txt", b"fra.txt"),
    "deflated bytes": lambda data: data[:60] + b"\xff" * 30 + data[90:],
    "a bomb": lambda _: zipped((b"a\t" + bytes(1 << 20) + b"\n") * 100),
    "an unpacked size": lambda data: changed(data, 24, b"\0\1\0\0"),
    "a name": lambda data: changed(changed(data, 9, b"\x08"), 46, b"\xff"),
    "bzip2": lambda _: zipped(b"a\tb\n", zipfile.ZIP_BZIP2),
    "lzma": lambda _: zipped(b"a\tb\n", zipfile.ZIP_LZMA),
}


def changed(data, place, new):
    """The same zip file with other bytes in the member's central header."""
    start = data.index(CENTRAL) + place
    return data[:start] + new + data[start + len(new) :]


@pytest.mark.parametrize("name", DAMAGES)
def test_an_unreadable_zip_is_refused_before_it_fills_memory(tmp_path, name):
    data = zipped((b"a\t" + bytes(1 << 19) + b"\n") * 10)
    path = tmp_path / "deu.zip"
    path.write_bytes(DAMAGES[name](data))
    tracemalloc.start()
    with pytest.raises(UserError, match=r"deu\.zip (has no deu\.txt that can be read|is refused)"):
        list(read_table(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 << 20


def test_real_table_has_the_known_counts(data):
    rows = list(read_table(data / "tatoeba_en_de/deu-eng.zip"))
    assert len(rows) == 169_197
    sets, left_out = split(iter(rows), held_out=2000, seed=1)
    assert sum(map(len, sets.values())) + left_out == 169_197


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--table", "nowhere.zip"], "nowhere.zip does not exist"),
        (["--held-out", "0", "--table", "x"], "--held-out: '0' is not a whole number above 0"),
        (["--table", "deu.txt", "--held-out", "1", "--bpe", "no"], "argument --bpe: invalid"),
    ],
)
def test_recipe_reports_the_commands_error_and_status(
    tmp_path, monkeypatch, capsys, words, problem
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deu.txt").write_text("a\tb\nc\td\ne\tf\n")
    with pytest.raises(SystemExit) as ended:
        sys.exit(run_command(lambda: prepare.main(words)))
    assert ended.value.code == 2
    assert problem in capsys.readouterr().err
