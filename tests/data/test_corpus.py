import gzip
import os
import random
import tracemalloc
from collections import Counter

import pytest

from hyptrans.data.corpus import CleanRule, read_pairs, scrubbed, write_pairs
from hyptrans.support.errors import UserError
from hyptrans.support.lines import LONGEST_LINE, read_lines


def lines_of(tmp_path, content):
    path = tmp_path / "a.en"
    path.write_bytes(content)
    return list(read_lines(path))


@pytest.mark.parametrize(
    "character",
    [*"\r\x00\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\u200b\u200d\ufeff"],
)
@pytest.mark.parametrize("raw_text", [True, False])
def test_only_the_line_feed_ends_a_line(tmp_path, character, raw_text):
    content = f"one{character}two\nthree\n".encode()
    lines = lines_of(tmp_path, content)
    assert len(lines) == 2
    one, three = (scrubbed(line, raw_text=raw_text) for line in lines)
    # text mode and splitlines are what later programs may use
    assert len(one.splitlines()) == 1
    assert "\x00" not in one
    assert three == "three"


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"\xef\xbb\xbfone\r\ntwo\r\n", ["one", "two"]),
        (b"one\n\nthree", ["one", "", "three"]),
        # whatever its name
        (gzip.compress(b"one\ntwo\n", mtime=0), ["one", "two"]),
    ],
)
def test_reader_strips_line_ends_byte_order_marks_and_compression(tmp_path, content, lines):
    assert lines_of(tmp_path, content) == lines


def test_scrubber_replaces_what_breaks_tokens_and_keeps_the_rest():
    found = scrubbed("a\u00a0b\tc\u2028d\x00e\u2581f", raw_text=True)
    assert found == "a b c de_f"
    for kept in (" zero\u200bwidth\u200d and  two spaces ", "caf\u0065\u0301"):
        assert scrubbed(kept, raw_text=True) == kept
    # the punctuation normalizer of Moses has rules for no-break spaces
    assert scrubbed("5\u00a0%", raw_text=False) == "5\u00a0%"


def test_raw_text_keeps_no_space_that_fairseq_would_split_at():
    spaces = [chr(code) for code in range(0x110000) if chr(code).isspace()]
    assert len(spaces) > 20
    assert {scrubbed(space, raw_text=True) for space in spaces if space != "\n"} == {" "}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"fine\nGr\xfc\xdfe\n", r"a\.en, line 2: byte 0xfc at position 3"),
        (b"", r"a\.en is empty"),
        *(
            (gzip.compress(bytes(range(256)) * 40, mtime=0)[:cut], "damaged gzip")
            for cut in (12, 40)
        ),
    ],
)
def test_files_that_are_not_text_are_refused(tmp_path, content, problem):
    with pytest.raises(UserError, match=problem):
        lines_of(tmp_path, content)


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_lines_up_to_the_length_limit_are_read_whole(tmp_path, end):
    # of a block's size, of many blocks, and many in a block
    sizes = [0, (1 << 18) - 1, 1 << 18, (1 << 18) + 1, 3, 700_000, LONGEST_LINE - 1, 0, 5]
    lines = ["x" * size for size in sizes]
    text = b"\r\n".join(line.encode() for line in lines) + end
    assert lines_of(tmp_path, text) == lines
    assert lines_of(tmp_path, gzip.compress(text, 1)) == lines


@pytest.mark.parametrize("zipped", [False, True])
def test_an_endless_line_is_refused_before_it_fills_memory(tmp_path, zipped):
    path = tmp_path / "endless"
    text = b"one\n" + b"x" * (40 << 20)
    path.write_bytes(gzip.compress(text, 1) if zipped else text)
    lines = read_lines(path)
    assert next(lines) == "one"
    tracemalloc.start()
    with pytest.raises(UserError, match=r"endless, line 2 has more than 4,194,304 bytes"):
        next(lines)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * LONGEST_LINE


def test_gzip_is_refused_once_its_size_is_suspicious(tmp_path):
    path = tmp_path / "bomb.gz"
    line = b"x" * (1 << 20) + b"\n"
    path.write_bytes(gzip.compress(line * 7))
    assert sum(1 for _ in read_lines(path)) == 7
    path.write_bytes(gzip.compress(line * 9))
    with pytest.raises(UserError, match=r"bomb\.gz is refused: it unpacks to more than 8,388,608"):
        list(read_lines(path))
    path.write_bytes(line * 70)
    assert sum(1 for _ in read_lines(path)) == 70


def test_repetitive_text_is_read_however_well_it_compresses(tmp_path):
    """As SCAN's commands: 12 MB in which gzip finds 50 times the same."""
    verbs = ["walk", "run", "jump", "look"]
    how = [f" {a}{b}" for a in ("", "around ", "opposite ") for b in ("left", "right")]
    one = [f"{verb}{way}{times}" for verb in verbs for way in how for times in ("", " twice")]
    lines = [f"{a} {and_} {b} thrice" for a in one for and_ in ("and", "after") for b in one]
    lines = [" ".join([line] * 8) for line in lines] * 7
    text = "".join(f"{line}\n" for line in lines).encode()
    path = tmp_path / "commands.gz"
    path.write_bytes(gzip.compress(text))
    assert len(text) > 12_000_000
    assert 41 < len(text) / path.stat().st_size < 100
    assert list(read_lines(path)) == lines


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_paths_that_are_not_files_are_refused_at_once(tmp_path, kind):
    path = tmp_path / "text"
    {
        "pipe": lambda: os.mkfifo(path),
        "device": lambda: path.symlink_to("/dev/zero"),
        "folder": path.mkdir,
    }[kind]()
    with pytest.raises(UserError, match=r"text is a .*, a file is needed"):
        list(read_lines(path))


def test_error_for_unequal_sides_names_the_first_unpaired_line():
    sides = [["a", "b"], ["x", "y", "z", "last"]]
    for some, names in ((sides, ("one", "other")), (sides[::-1], ("other", "one"))):
        with pytest.raises(UserError, match=r"one ends after line 2, and other continues"):
            list(read_pairs(*some, *names))


def test_a_failed_write_leaves_no_file(tmp_path):
    def broken():
        yield "a", "b"
        raise UserError("stop")

    with pytest.raises(UserError, match="stop"):
        write_pairs(broken(), tmp_path / "x", tmp_path / "y")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("pair", "why"),
    [
        (("a b c d", "x y"), "ratio above 1.5"),
        (("x y", "a b c d"), "ratio above 1.5"),
        (("", "a"), "empty side"),
        (("a", "  "), "empty side"),
        (("a " * 6, "a " * 5), "longer than 5"),
    ],
)
def test_pairs_are_dropped_for_the_first_reason(pair, why):
    counts = Counter()
    assert list(CleanRule(maximum=5, ratio=1.5).keep([pair, ("a", "b")], counts)) == [("a", "b")]
    assert counts == {why: 1}


def test_cleaning_rule_matches_the_moses_script():
    rng = random.Random(4)
    sizes = [(rng.randint(0, 25), rng.randint(0, 25)) for _ in range(2000)]
    found = CleanRule(maximum=20, ratio=1.5).keep(
        [("w " * m, "v " * n) for m, n in sizes], Counter()
    )
    expected = [
        (m, n) for m, n in sizes if 1 <= m <= 20 and 1 <= n <= 20 and m / n <= 1.5 and n / m <= 1.5
    ]
    assert [(one.count("w"), other.count("v")) for one, other in found] == expected
