"""Text files that commands are given: each side there, UTF-8, as long as the other."""

import argparse

import pytest

from hyptrans_startup.commands.texts import check_text, longest, misaligned_text
from hyptrans_startup.errors import UserError


def text_files(folder, **texts):
    for name, text in texts.items():
        (folder / f"t.{name}").write_bytes(text)
    return argparse.Namespace(
        source_lang="en", target_lang="de", only_source=False, align_suffix=None
    )


@pytest.mark.parametrize(
    ("texts", "error"),
    [
        ({"en": b"a\nb\n", "de": b"a\r\nb"}, None),
        # fairseq ends a line at a carriage return too
        ({"en": b"a\nb\n", "de": b"a\rb\nc\n"}, "t.en has 2, .*t.de has 3"),
        ({"en": b"a\n", "de": b"\xff\n"}, "t.de is not UTF-8 text"),
        ({"en": b"a\n"}, "t.de does not exist"),
        ({"en": b"", "de": b"a\n"}, "t.en is empty"),
    ],
)
def test_text_is_counted_as_fairseq_reads_it(texts, error, tmp_path):
    args = text_files(tmp_path, **texts)
    if error is None:
        check_text(str(tmp_path / "t"), args)
    else:
        with pytest.raises(UserError, match=error):
            check_text(str(tmp_path / "t"), args)


def test_the_training_text_has_one_name_and_other_sets_may_have_several(tmp_path):
    ran = []
    for name in ("a,b", "c"):
        text_files(tmp_path, **{f"{name}.{side}": b"x\n" for side in ("en", "de")})
    train, both = str(tmp_path / "t.a,b"), f"{tmp_path / 't.c'},{tmp_path / 't.none'}"
    args = text_files(tmp_path)
    args.trainpref, args.validpref, args.testpref = train, None, None
    misaligned_text(ran.append, args)
    assert ran == [args]
    args.testpref = both
    with pytest.raises(UserError, match=r"t\.none\.en does not exist"):
        misaligned_text(ran.append, args)


def test_alignments_of_one_set_are_enough_and_of_none_are_missed(tmp_path):
    args = text_files(tmp_path, **{f"{x}.{side}": b"x\n" for x in "ab" for side in ("en", "de")})
    args.trainpref, args.validpref, args.testpref = str(tmp_path / "t.a"), None, None
    args.align_suffix = "align"
    with pytest.raises(UserError, match=r"t\.a\.align does not exist"):
        misaligned_text(lambda _: None, args)
    args.validpref = str(tmp_path / "t.b")
    (tmp_path / "t.b.align").write_text("0-0\n")
    misaligned_text(lambda _: None, args)


def test_training_text_that_is_to_measure_it_is_told(tmp_path, caplog):
    args = text_files(tmp_path, **{f"a.{side}": b"x\n" for side in ("en", "de")})
    args.trainpref, args.validpref, args.testpref = str(tmp_path / "t.a"), None, None
    misaligned_text(lambda _: None, args)
    assert not caplog.messages
    args.testpref = args.trainpref
    misaligned_text(lambda _: None, args)
    assert caplog.messages == [
        f"{args.trainpref} is training text, so the set measures what was learned"
    ]


def test_source_alone_needs_no_target(tmp_path):
    args = text_files(tmp_path, en=b"a\n")
    args.only_source = True
    check_text(str(tmp_path / "t"), args)


def test_longest_source_is_that_of_the_task_that_takes_least():
    assert longest({"de-en": (30, 20), "fr-en": (25, 40)}) == 25
    assert (longest((9, 5)), longest(7)) == (9, 7)
