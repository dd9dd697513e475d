"""Markup is read in linear time, and each segment once."""

import pytest

from hyptrans.dataprep.sources.markup import READERS
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
<SEG id=02>
Second <b>two</b>.
</SEG></doc>
<DOC docid='two'><seg id="1"></seg></DOC></refset>"""


def test_sgml_is_read_with_its_documents(read):
    assert read("sgml", SGML) == [
        ("document one segment 1", "First &amp; one."),
        ("document one segment 2", "Second <b>two</b>."),
        ("document two segment 1", ""),
    ]


def test_xml_is_read_with_its_documents(read):
    text = (
        '<m><doc docid="a"><seg id="1"> One <b>x</b> &amp; y </seg>\n<seg id="2">2</seg></doc></m>'
    )
    assert read("xml", text) == [
        ("document a segment 1", "One <b>x</b> & y"),
        ("document a segment 2", "2"),
    ]


# each of these took minutes, or was read several times
@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        ("sgml", '<doc><seg id="1">' + " " * 200_000 + "x", "no markup"),
        ("sgml", '<seg id="1">' * 20_000, "segment 1 is not closed"),
        ("sgml", "<seg " * 20_000, "no markup"),
        ("sgml", '<doc docid="' * 20_000, "no markup"),
        ("xml", "<m>" * 20_000, "no markup"),
        ("xml", "<doc><seg>a<seg>b</seg></seg></doc>", "no markup"),
    ],
    ids=range(6),
)
def test_markup_without_end_is_refused(kind, text, reason, read):
    with pytest.raises(UserError, match=reason):
        read(kind, text)


SEGMENT = f'<seg id="1">{"x" * 80}</seg>\n'
MUCH = 3_100_000 // len(SEGMENT) * SEGMENT


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("sgml", f"<doc>{MUCH}</doc>"),
        ("xml", f"<m><doc>{MUCH}</doc></m>"),
        ("sgml", "\n" * 3_100_000),
    ],
)
def test_markup_that_does_not_belong_in_memory_is_refused(kind, text, read):
    with pytest.raises(UserError, match="text is refused: it has more than 3,000,000 characters"):
        read(kind, text)


def test_tagged_lines_may_be_any_number(read):
    assert len(read("tags", MUCH)) == MUCH.count("\n")


def test_entities_that_a_file_defines_stay_names(read):
    text = '<!DOCTYPE m [<!ENTITY a "bbbb">]><m><doc><seg id="1">&a;&lt;&#228;</seg></doc></m>'
    assert read("xml", text) == [("document ? segment 1", "&a;<ä")]


def test_spaces_of_a_segment_and_documents_in_documents_are_read_once(read):
    text = "<doc>" * 20_000 + f'<seg id="1">{" " * 200_000}x</seg>'
    assert read("sgml", text) == [("document ? segment 1", "x")]
