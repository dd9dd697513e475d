import io
import tarfile

import pytest

from hyptrans.data.sources.archive import unpack
from hyptrans.support.errors import UserError
from tests.data.conftest import needs_filter, tree

WANTED = ["train.de", "train.en"]


def member(name, content=b"text\n", kind=tarfile.REGTYPE, link=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    info.size = len(content) if kind == tarfile.REGTYPE else 0
    return info, content


def make(path, *members, mode="w:gz"):
    with tarfile.open(path, mode) as tar:
        for info, content in members:
            tar.addfile(info, io.BytesIO(content))
    return path


GOOD = [
    member("de-en", kind=tarfile.DIRTYPE),
    member("de-en/train.de", b"eins\n" * 9000),
    member("./de-en/train.en", b"one\n"),
    member("de-en/other", b"not wanted"),
]


@needs_filter
@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_archive_unpacks_wanted_files_without_their_folders(tmp_path, mode):
    archive = make(tmp_path / "a.tgz", *GOOD, mode=mode)
    assert unpack(archive, WANTED, tmp_path / "out") == {"members": 4, "unpacked": 2}
    assert tree(tmp_path / "out") == {"train.de": b"eins\n" * 9000, "train.en": b"one\n"}


BAD = {
    "parent": member("../train.de"),
    "inner parent": member("de-en/../../train.de"),
    "symlink": member("de-en/train.de", kind=tarfile.SYMTYPE, link="/etc/passwd"),
    "hard link": member("de-en/train.de", kind=tarfile.LNKTYPE, link="../de-en/train.en"),
    "device": member("de-en/train.de", kind=tarfile.CHRTYPE),
    "pipe": member("de-en/train.de", kind=tarfile.FIFOTYPE),
}


@needs_filter
@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("last", [True, False])
def test_an_archive_with_a_dangerous_member_is_refused(tmp_path, name, last):
    inner = tmp_path / "inner"
    inner.mkdir()
    members = [*GOOD[:1], *GOOD[2:], BAD[name]] if last else [BAD[name], *GOOD]
    archive = make(inner / "a.tgz", *members)
    with pytest.raises(UserError, match="is refused: its member"):
        unpack(archive, WANTED, inner / "out")
    assert set(tree(tmp_path)) == {"inner/a.tgz"}


@needs_filter
def test_an_archive_with_a_duplicate_file_is_refused(tmp_path):
    archive = make(tmp_path / "a.tgz", *GOOD, member("elsewhere/train.de"))
    with pytest.raises(UserError, match=r"holds train\.de twice"):
        unpack(archive, WANTED, tmp_path / "out")


@needs_filter
def test_an_archive_with_endless_members_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("hyptrans.data.sources.archive.MOST_MEMBERS", len(GOOD))
    assert unpack(make(tmp_path / "a.tgz", *GOOD), WANTED, tmp_path / "out")["members"] == 4
    archive = make(tmp_path / "b.tgz", *GOOD, member("x"))
    with pytest.raises(UserError, match=r"b\.tgz is refused: it has more than 4 members"):
        unpack(archive, WANTED, tmp_path / "more")


@needs_filter
@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.9, 0.99])
@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_an_archive_truncated_anywhere_is_refused(tmp_path, share, mode):
    # random bytes do not compress, so that every part of the file matters
    noise = bytes((i * i * 31 + i // 7) % 251 for i in range(60_000))
    archive = make(tmp_path / "a.tgz", member("train.de", noise), mode=mode)
    content = archive.read_bytes()
    end = len(content) if mode == "w:gz" else 512 + len(noise)
    archive.write_bytes(content[: int(end * share)])
    with pytest.raises(UserError, match="truncated"):
        unpack(archive, WANTED, tmp_path / "out")
    assert set(tree(tmp_path)) == {"a.tgz"}


@needs_filter
@pytest.mark.parametrize("content", [b"", b"<html>not found</html>" * 99, b"PK\x03\x04" * 300])
def test_a_file_that_is_not_an_archive_is_refused(tmp_path, content):
    archive = tmp_path / "a.tgz"
    archive.write_bytes(content)
    with pytest.raises(UserError, match="is not a tar archive"):
        unpack(archive, WANTED, tmp_path / "out")


@needs_filter
def test_a_suspiciously_compressed_archive_is_refused(tmp_path):
    archive = make(tmp_path / "a.tgz", member("train.en", bytes(90 << 20)))
    with pytest.raises(UserError, match=r"more than 8,388,608 bytes, .* the folder with --raw"):
        unpack(archive, WANTED, tmp_path / "out")


@needs_filter
def test_archive_members_may_have_long_names(tmp_path):
    for form in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        archive = tmp_path / "a.tar"
        with tarfile.open(archive, "w", format=form) as tar:
            info, content = member(f"{'d' * 200}/{'ü' * 100}/train.en")
            info.pax_headers = {"mtime": "1.5"} if form == tarfile.PAX_FORMAT else {}
            tar.addfile(info, io.BytesIO(content))
        assert unpack(archive, WANTED, tmp_path / "out") == {"members": 1, "unpacked": 1}


def test_error_for_a_python_without_tar_filters_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.delattr(tarfile, "data_filter", raising=False)
    with pytest.raises(UserError, match="update Python, or unpack it and name the folder"):
        unpack(make(tmp_path / "a.tgz", *GOOD), WANTED, tmp_path / "out")
    assert tree(tmp_path) == {"a.tgz": (tmp_path / "a.tgz").read_bytes()}
