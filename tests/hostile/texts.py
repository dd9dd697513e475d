"""Texts and tables that unpack to anything but sentences, and manifests."""

import gzip
import io
import json
import random
import struct
import zipfile
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.hostile.running import Hostile, ordinary

_SEGMENT = b'<seg id="1">x</seg>'
_LINES = b"x" * (1 << 20) + b"\n"


def texts(draw: random.Random, folder: Path, count: int) -> list[Hostile]:
    """Gzip files that are small and hold a line, a segment or a text without end."""
    whole = folder / "whole"
    whole.write_bytes(b'<m><doc docid="1">\n<seg id="1">x</seg>\n</doc></m>\n')
    tries = [ordinary(partial(read, kind, whole)) for kind in ("plain", "sgml", "xml")]
    for i in range(count):
        name = list(KINDS)[i % len(KINDS)]
        kind, begin, unit, end = KINDS[name]
        path = folder / f"text{i}.gz"
        with gzip.open(path, "wb", 1) as file:
            file.write(begin)
            for _ in range(draw.randint(70, 200)):
                file.write(unit * max(1, (1 << 20) // len(unit)))
            file.write(end)
        tries.append(Hostile(name, partial(read, kind, path)))
    return tries


def read(kind: str, path: Path) -> None:
    """As the data preparation does, with nothing kept."""
    from hyptrans.data.sources.files import READERS

    deque(READERS[kind](path), maxlen=0)


# name: reader, beginning, what is repeated to more than 70 MB, end
KINDS = {
    "line": ("plain", b"one\n", b"x", b""),
    "line of tags": ("tags", b"one\n", b"<url>", b""),
    "lines": ("plain", b"one\n", _LINES, b""),
    "blank lines": ("sgml", b'<seg id="1">x</seg>', b"\n", b""),
    "short lines": ("tags", b"", b"a\n", b""),
    "segment": ("sgml", b'<doc><seg id="1">', b"x", b"</seg></doc>"),
    "segments on a line": ("sgml", b"<doc>", _SEGMENT, b"</doc>"),
    "segments on many lines": ("sgml", b"", 9_000 * _SEGMENT + b"\n", b""),
    "segments": ("sgml", b"<doc>\n", _SEGMENT + b"\n", b"</doc>"),
    "element on a line": ("xml", b"<m><doc>", _SEGMENT, b"</doc></m>"),
    "elements": ("xml", b"<m><doc>\n", _SEGMENT + b"\n", b"</doc></m>"),
}


def tables(draw: random.Random, folder: Path, count: int) -> list[Hostile]:
    """Zip files in place of a table of sentences."""
    from hyptrans.data.sources.tatoeba import read_table

    def hostile(name: str, member: str, lines: int, share: float = 1.0) -> Callable[[], object]:
        file, path = io.BytesIO(), folder / f"{name}.zip"
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(member, b"a\tb\tc\n" * lines)
        path.write_bytes(file.getvalue()[: int(len(file.getvalue()) * share)])
        return lambda: deque(read_table(path), maxlen=0)

    tries = [ordinary(hostile("whole", "deu.txt", 9))]
    for i in range(count):
        kind, member, share = list(TABLES)[i % len(TABLES)]
        use = hostile(f"table{i}", member, draw.randint(17 << 20, 40 << 20), share)
        tries.append(Hostile(kind, use))
    return tries


TABLES = [("bomb", "deu.txt", 1.0), ("cut", "deu.txt", 0.5), ("other", "other.txt", 1.0)]


def manifests(draw: random.Random, folder: Path, count: int) -> list[Hostile]:
    """What a data folder says of its text, each with a field that is not as it is written."""
    from hyptrans.data import manifest

    step = {"name": "tokenize test.en", "steps": "tokenize"}
    whole = {"command": [], "inputs": {}, "outputs": {"bpe.codes": {}}, "steps": [step]}
    whole["languages"] = ["en", "de"]

    def hostile(name: str, text: bytes) -> Callable[[], object]:
        (folder / name).mkdir()
        (folder / name / "manifest.json").write_bytes(text)
        return partial(manifest.read, folder / name)

    tries = [ordinary(hostile("whole", json.dumps(whole).encode()))]
    odd = [None, 3, "x", [], [[]], {}, [3], {"name": []}, [{"name": "tokenize test.en"}], -1e999]
    for i in range(count):
        field = draw.choice(list(whole))
        text = json.dumps({**whole, field: draw.choice(odd)}).encode()
        if i % 4 == 0:
            text = draw.choice([b"[", b'{"a":', b"[{"]) * draw.randint(2_000, 100_000)
        elif i % 4 == 1:
            text = text[: draw.randrange(len(text))] + struct.pack("<H", draw.randrange(1 << 16))
        tries.append(Hostile(field, hostile(f"manifest{i}", text)))
    return tries
