import shutil
from collections import Counter

import numpy as np
import pytest

from hyptrans.data import dictionary, indexed
from hyptrans.data.indexed import IndexedSet
from hyptrans.support.errors import UserError
from tests import forks
from tests.data.conftest import make_sentences, tree, write

ODD = ["", "  a  a ", "<unk> <s> </s> <pad> b", "madeupword0001 x", "\u00e9 \U0001f600 z \u4e2d"]


@pytest.fixture
def text(tmp_path):
    """Prefixes of a training and a test set, which has words that training lacks."""
    for lang in ("en", "de"):
        write(tmp_path / f"train.{lang}", [*make_sentences(200, lang), *ODD])
        write(tmp_path / f"test.{lang}", [*ODD, *make_sentences(40, lang, 1)])
    return tmp_path


def fairseq(folder, *options):
    pytest.importorskip("fairseq")
    words = ["--source-lang", "en", "--target-lang", "de", "--trainpref", folder / "train"]
    words += ["--testpref", folder / "test", "--destdir", folder / "theirs", "--workers", "1"]
    forks.run("fairseq-preprocess", *words, *options, cwd=folder)
    (folder / "theirs" / "preprocess.log").unlink()
    return tree(folder / "theirs")


def ours(folder, *, joined=False):
    out = folder / "ours"
    groups = [("en", "de")] if joined else [("en",), ("de",)]
    for group in groups:
        counts = dictionary.count_symbols(folder / f"train.{lang}" for lang in group)
        for lang in group:
            size = dictionary.write(counts, out / f"dict.{lang}.txt")
            dtype = indexed.number_type(size)
            encode = dictionary.encoder(out / f"dict.{lang}.txt", dtype)
            for name in ("train", "test"):
                lines = (folder / f"{name}.{lang}").read_text().split("\n")[:-1]
                indexed.write(map(encode, lines), dtype, out / f"{name}.en-de.{lang}")
    return out


@pytest.mark.parametrize("joined", [False, True])
def test_binary_files_match_fairseq_preprocess(text, joined):
    theirs = fairseq(text, *(["--joined-dictionary"] if joined else []))
    made = tree(ours(text, joined=joined))
    assert sorted(made) == sorted(theirs)
    assert made == theirs


def test_given_dictionaries_are_used_as_in_fairseq_preprocess(text):
    out = ours(text)
    dictionary.write(Counter("aab"), out / "dict.en.txt", set("abxyz"))
    shutil.copy(out / "dict.en.txt", text / "given")
    theirs = fairseq(text, "--srcdict", text / "given")
    assert theirs["dict.en.txt"] == (text / "given").read_bytes()
    encode = dictionary.encoder(text / "given", "<u2")
    indexed.write(map(encode, ODD), "<u2", out / "odd")
    size = len((out / "odd.bin").read_bytes())
    assert theirs["test.en-de.en.bin"][:size] == (out / "odd.bin").read_bytes()


@pytest.mark.parametrize(("symbols", "width"), [(65_499, 2), (65_500, 4)])
def test_token_ids_take_four_bytes_where_fairseqs_do(tmp_path, symbols, width):
    from fairseq.data.indexed_dataset import MMapIndexedDataset, best_fitting_int_dtype

    dtype = indexed.number_type(symbols)
    assert np.dtype(dtype) == best_fitting_int_dtype(symbols) == np.dtype(f"<u{width}")
    rows = [[symbols - 1, 2], [2]]
    indexed.write((np.array(row, dtype).tobytes() for row in rows), dtype, tmp_path / "a.en")
    for made in (MMapIndexedDataset(str(tmp_path / "a.en")), IndexedSet(tmp_path / "a.en")):
        assert [made[i].tolist() for i in range(len(made))] == rows
        assert made.sizes.tolist() == [2, 1]
    assert (made[-1].tolist(), made[0].dtype, made.count(2)) == ([2], np.int64, 2)
    indexed.write([], dtype, tmp_path / "a.en")
    assert len(IndexedSet(tmp_path / "a.en")) == 0


@pytest.mark.parametrize(
    ("name", "damage", "problem"),
    [
        ("bin", None, "is missing"),
        ("bin", lambda content: content + b"\2\0", r"does not have the size that .*a\.idx states"),
        ("idx", lambda content: content[:-3], "is damaged"),
        ("idx", lambda content: b"?" + content[1:], "is damaged"),
        # another type, a count without end, other places
        ("idx", lambda content: content[:17] + b"\7" + content[18:], "is damaged"),
        ("idx", lambda content: content[:25] + b"\x40" + content[26:], "is damaged"),
        ("idx", lambda content: content[:-1] + b"\1", "is damaged"),
    ],
    ids=range(7),
)
def test_a_damaged_set_gives_a_one_sentence_error(tmp_path, name, damage, problem):
    indexed.write([b"\5\0\2\0"] * 3, "<u2", tmp_path / "a")
    path = tmp_path / f"a.{name}"
    path.write_bytes(damage(path.read_bytes())) if damage else path.unlink()
    with pytest.raises(UserError, match=rf"a\.{name} {problem}"):
        IndexedSet(tmp_path / "a")
