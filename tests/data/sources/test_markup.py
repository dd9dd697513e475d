"""Markup is read in linear time, and each segment once."""

import pytest

from hyptrans.data.sources.files import READERS
from hyptrans.support.errors import UserError


@pytest.fixture
def read(tmp_path):
    def read(kind, text):
        path = tmp_path / "text"
        path.write_text(text, encoding="utf-8")
        return list(READERS[kind](path))

    return read


SGML = """<refset setid="x"><doc sysid="ref" docid="one">
<seg id="1"> First &amp; one. </seg>
<SEG id=02> Second <b>two</b>. </SEG></doc>
<DOC docid='two'><seg id="1"></seg></DOC></refset>"""


def test_reader_keeps_or_decodes_entities_by_format(read):
    expected = ["First &amp; one.", "Second <b>two</b>.", ""]
    assert read("sgml", SGML) == expected
    assert read("xml", SGML) == ["First & one.", *expected[1:]]


# each of these took minutes, or was read several times
@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        ("sgml", '<doc><seg id="1">' + " " * 200_000 + "x", "is not closed"),
        ("sgml", '<seg id="1">' * 20_000, "is not closed"),
        ("sgml", '<seg id="1">' * 20_000 + "</seg>" * 20_000, "is not closed"),
        ("sgml", "<seg " * 20_000, "is not closed"),
        ("sgml", '<seg id="1">one\n</seg>', "text, line 1: a segment is not closed"),
        ("sgml", '<doc docid="' * 20_000, "is not IWSLT or WMT markup"),
        ("xml", "<m>" * 20_000, "is not IWSLT or WMT markup"),
        ("xml", "<doc><seg>a<seg>b</seg></seg></doc>", "is not closed"),
    ],
    ids=range(8),
)
def test_endless_markup_is_refused(kind, text, reason, read):
    with pytest.raises(UserError, match=reason):
        read(kind, text)


def test_entities_defined_in_a_file_are_not_expanded(read):
    text = '<!DOCTYPE m [<!ENTITY a "bbbb">]><m><doc><seg id="1">&a;&lt;&#228;</seg></doc></m>'
    assert read("xml", text) == ["&a;<ä"]


def test_nested_documents_and_segment_spaces_are_read_once(read):
    text = "<doc>" * 20_000 + f'<seg id="1">{" " * 200_000}x</seg>'
    assert read("sgml", text) == ["x"]
