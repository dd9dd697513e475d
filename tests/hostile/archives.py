"""Archives that unpack to anything but the files of a data set."""

import gzip
import io
import random
import tarfile
import zipfile
from collections import deque
from functools import partial
from pathlib import Path

from tests.hostile.running import Hostile, ordinary

WANTED = ["train.en", "train.de"]


def unpack(path: Path, folder: Path) -> None:
    """As data preparation does, and nothing lies beside the folder afterwards."""
    from hyptrans.data.sources.archive import unpack as unpacked
    from hyptrans.support.errors import UserError

    before = set(folder.parent.rglob("*"))
    try:
        unpacked(path, WANTED, folder)
    except UserError:
        assert set(folder.parent.rglob("*")) <= before, "something was left"
        raise
    new = set(folder.parent.rglob("*")) - before
    assert new <= {folder, *(folder / name for name in WANTED)}, "something else was written"


def header(name: str, kind: bytes, size: int) -> bytes:
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, size
    return info.tobuf(tarfile.GNU_FORMAT)


def packed(path: Path, data: bytes, *, zipped: bool) -> Path:
    path.write_bytes(gzip.compress(data, 1) if zipped else data)
    return path


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % tarfile.BLOCKSIZE)


def archives(draw: random.Random, folder: Path, count: int) -> list[Hostile]:
    """One danger in each archive."""
    good, other = (header(f"a/{name}", tarfile.REGTYPE, 4) + padded(b"one\n") for name in WANTED)
    path = packed(folder / "whole.tgz", good + other + bytes(1024), zipped=True)
    tries = [ordinary(partial(unpack, path, folder / "whole"))]
    for i in range(count):
        kind = list(KINDS)[i % len(KINDS)]
        bad = KINDS[kind](draw)
        data = draw.choice([bad + good, good + bad]) + bytes(1024)
        path = packed(folder / f"archive{i}.tgz", data, zipped=draw.random() < 0.5)
        tries.append(Hostile(kind, partial(unpack, path, folder / f"out{i}")))
    return tries


def sparse(draw: random.Random) -> bytes:
    return header("train.de", tarfile.GNUTYPE_SPARSE, 10 ** draw.randint(9, 12))


def sparse_chain(draw: random.Random) -> bytes:
    """A member of few bytes and a map of its holes that goes on and on, tarfile reads all of it."""
    head = bytearray(header("x", tarfile.GNUTYPE_SPARSE, 0))
    head[482:495] = b"\1%011o\0" % draw.randint(10**8, 10**9)
    head[148:156] = b"%06o\0 " % (sum(head[:148]) + 8 * 32 + sum(head[156:]))
    hole = b"%011o\0%011o\0" % (draw.randint(1, 9), draw.randint(1, 9))
    return bytes(head) + (hole * 21 + b"\1" + bytes(7)) * draw.randint(50_000, 200_000)


def pax_sparse(draw: random.Random) -> bytes:
    info = tarfile.TarInfo("train.de")
    size = 10 ** draw.randint(9, 12)
    info.pax_headers = {"GNU.sparse.size": str(size), "GNU.sparse.map": f"0,0,{size},0"}
    return info.tobuf(tarfile.PAX_FORMAT)


def pax_size(draw: random.Random) -> bytes:
    info = tarfile.TarInfo("train.de")
    info.pax_headers = {"size": str(draw.choice([10**12, -1, 512]))}
    return info.tobuf(tarfile.PAX_FORMAT)


def claims(draw: random.Random) -> bytes:
    return header("train.de", tarfile.REGTYPE, draw.choice([10**12, 2**62, 10**11]))


def large_header(draw: random.Random) -> bytes:
    kind = draw.choice([tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME])
    size = draw.randint(2 << 20, 1 << 30)
    return header("x", kind, size) + padded(b"9 a=b\n" * (1 << 20))


def chain(draw: random.Random) -> bytes:
    kind = draw.choice([tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK])
    one = header("x", kind, 6) + padded(b"6 a=b\n")
    return one * draw.randint(2_000, 40_000)


def members(draw: random.Random) -> bytes:
    return header("a/b", tarfile.REGTYPE, 0) * draw.randint(20_000, 100_000)


def bomb(draw: random.Random) -> bytes:
    size = draw.randint(200 << 20, 300 << 20)
    return header(draw.choice(["train.de", "x"]), tarfile.REGTYPE, size) + bytes(size)


def after_the_end(draw: random.Random) -> bytes:
    """Zeros behind the end of the archive, up to which a gzip file is read."""
    return bytes(1024 + draw.randint(200 << 20, 300 << 20))


def outside(draw: random.Random) -> bytes:
    parts = draw.choice(["../", "../../", "/tmp/", "a/../../", "..\\", "./../"])
    return header(f"{parts}train.de", tarfile.REGTYPE, 4) + padded(b"out\n")


def link(draw: random.Random) -> bytes:
    info = tarfile.TarInfo("train.de")
    info.type = draw.choice([tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
    info.linkname = draw.choice(["/etc/passwd", "../x", "train.en"])
    return info.tobuf(tarfile.GNU_FORMAT)


def twice(draw: random.Random) -> bytes:
    return (header("b/train.en", tarfile.REGTYPE, 4) + padded(b"two\n")) * draw.randint(1, 3)


def noise(draw: random.Random) -> bytes:
    data = bytearray(header("train.de", tarfile.REGTYPE, 4) + padded(b"two\n"))
    for _ in range(draw.randint(1, 9)):
        data[draw.randrange(512)] = draw.randrange(256)
    return bytes(data)


KINDS = {
    "sparse": sparse,
    "map of holes": sparse_chain,
    "sparse by pax": pax_sparse,
    "size by pax": pax_size,
    "claimed size": claims,
    "large header": large_header,
    "chain of headers": chain,
    "members": members,
    "bomb": bomb,
    "bomb after the end": after_the_end,
    "outside": outside,
    "link": link,
    "twice": twice,
    "noise": noise,
}


def tables(draw: random.Random, folder: Path, count: int) -> list[Hostile]:
    """Zip files in place of a table of sentences."""
    from hyptrans.data.sources.tatoeba import read_table

    def read(path: Path) -> None:
        deque(read_table(path), maxlen=0)

    whole = folder / "whole.zip"
    whole.write_bytes(table("deu.txt", 9))
    tries = [ordinary(partial(read, whole))]
    for i in range(count):
        kind = draw.choice(["bomb", "cut", "other"])
        name = "other.txt" if kind == "other" else "deu.txt"
        content = table(name, draw.randint(17 << 20, 40 << 20))
        path = folder / f"table{i}.zip"
        path.write_bytes(content[: len(content) // 2] if kind == "cut" else content)
        tries.append(Hostile(kind, partial(read, path)))
    return tries


def table(name: str, lines: int) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, b"a\tb\tc\n" * lines)
    return file.getvalue()


def markup(draw: random.Random, folder: Path, count: int) -> list[Hostile]:
    """Segments that are unclosed, nested, or slow to parse."""
    from hyptrans.data.sources.files import READERS

    whole = folder / "whole"
    whole.write_text('<doc docid="1"><seg id="1">x</seg></doc>')
    tries = [ordinary(partial(read_once, READERS["sgml"], whole))]
    for i in range(count):
        n = draw.randint(15_000, 40_000)
        seg = '<seg id="1">'
        kind, text = draw.choice(
            [
                ("sgml", f"<doc>{seg}{' ' * n}x"),
                ("sgml", f"<doc>{seg}{' ' * n}x</seg>"),
                ("sgml", f"<doc>{seg}{draw.choice(' x<') * n}</seg"),
                ("sgml", seg * n),
                ("sgml", "<seg " * n),
                ("sgml", "<doc " * n + f"{seg}x</seg>"),
                ("sgml", '<doc docid="' * n),
                ("sgml", "<doc>" * n + f"{seg}x</seg>" + "</doc>" * n),
                ("xml", "<doc>" * n + f"{seg}x</seg>".replace("1", '1"') + "</doc>" * n),
                ("xml", f'<m><doc><doc><seg id="1">{"x" * n}</seg></doc></doc></m>'),
                ("xml", "<m><doc><seg>" + "<b>" * n + "</b>" * n + "</seg></doc></m>"),
                ("xml", "<m><doc><seg>" + "<seg>" * 9 + "</seg>" * 9 + "</seg></doc></m>"),
                ("xml", '<!DOCTYPE m [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]><m>&b;</m>'),
                ("xml", '<!DOCTYPE m [<!ENTITY a SYSTEM "file:///etc/passwd">]><m>&a;</m>'),
                ("xml", "<m>" * n),
                ("tags", "<title>" * n),
                ("tags", "<url>" + " " * n + "\n" + "<keywords>" * n),
            ]
        )
        path = folder / f"markup{i}"
        path.write_text(text)
        use = partial(read_once, READERS[kind], path)
        tries.append(Hostile(f"{kind} {text[:30]}", use))
    return tries


def read_once(reader: object, path: Path) -> None:
    """Each segment is read at most once."""
    found = list(reader(path))  # type: ignore[operator]
    assert len(found) <= path.read_text().count("<seg") + path.read_text().count("\n") + 1
