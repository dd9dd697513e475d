"""Zip files and markup that hold anything but the sentences of a data set."""

import io
import random
import zipfile
from collections import deque
from functools import partial
from pathlib import Path

from tests.hostile.running import Hostile, ordinary


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
