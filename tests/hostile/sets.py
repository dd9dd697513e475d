"""Binarized sets whose index or numbers are not what fairseq-preprocess writes."""

import random
import struct
from functools import partial
from pathlib import Path

import numpy as np

from hyptrans_startup.errors import UserError
from tests.hostile.running import Hostile, ordinary

HEAD = 9 + 8 + 1 + 8


def written(prefix: Path, draw: random.Random, words: int = 20, impl: str = "mmap") -> Path:
    """A set of a few sentences; returns it as fairseq names it, without an ending."""
    import torch
    from fairseq.data import indexed_dataset

    builder = indexed_dataset.make_builder(f"{prefix}.bin", impl, words)
    for _ in range(draw.randint(5, 20)):
        builder.add_item(torch.tensor([draw.randrange(words) for _ in range(draw.randint(1, 9))]))
    builder.finalize(f"{prefix}.idx")
    return prefix


def read(prefix: Path, impl: str = "mmap", words: int = 20) -> None:
    """As training and translation do: every sentence, and what the words are."""
    from fairseq.data import Dictionary, indexed_dataset

    dictionary = Dictionary()
    for i in range(words - len(dictionary)):
        dictionary.add_symbol(f"w{i}")
    found = indexed_dataset.make_dataset(str(prefix), impl, impl == "lazy", dictionary=dictionary)
    if found is None:
        raise UserError(f"{prefix} is not there")
    for i in range(len(found)):
        assert all(0 <= number < words for number in found[i].tolist()), "not a word"


def sets(draw: random.Random, folder: Path, count: int) -> list[Hostile]:
    """One thing is wrong in each set."""
    tries = [ordinary(partial(read, written(folder / "whole", draw)))]
    for i in range(count):
        prefix = written(folder / f"set{i}", draw)
        index, data = Path(f"{prefix}.idx"), Path(f"{prefix}.bin")
        kind = draw.choice(list(CHANGES))
        CHANGES[kind](draw, index, data)
        use = partial(read, prefix, "lazy" if kind.startswith("old") else "mmap")
        tries.append(Hostile(kind, use))
    return tries


def at(path: Path, place: int, packed: bytes) -> None:
    content = bytearray(path.read_bytes())
    content[place : place + len(packed)] = packed
    path.write_bytes(content)


def sentences(index: Path) -> int:
    return struct.unpack("<Q", index.read_bytes()[18:26])[0]


def huge_count(draw: random.Random, index: Path, data: Path) -> None:
    at(index, 18, struct.pack("<Q", draw.choice([2**63, 2**40, 10**9, sentences(index) + 1, 0])))


def position(draw: random.Random, index: Path, data: Path) -> None:
    count = sentences(index)
    place = HEAD + 4 * count + 8 * draw.randrange(1, count)
    at(index, place, struct.pack("<q", draw.choice([-1, 1, 2**40, -(2**40), 10**6])))


def size(draw: random.Random, index: Path, data: Path) -> None:
    place = HEAD + 4 * draw.randrange(sentences(index))
    at(index, place, struct.pack("<i", draw.choice([-1, -(2**31), 2**31 - 1, 10**6])))


def number(draw: random.Random, index: Path, data: Path) -> None:
    count = data.stat().st_size // 2
    at(data, 2 * draw.randrange(count), struct.pack("<H", draw.choice([20, 21, 65535, 30000])))


def code(draw: random.Random, index: Path, data: Path) -> None:
    at(index, 17, bytes([draw.choice([0, 6, 7, 5, 2, 11, 255])]))


def noise(draw: random.Random, index: Path, data: Path) -> None:
    for _ in range(5):
        at(index, draw.randrange(9, index.stat().st_size), draw.randbytes(1))


def head(draw: random.Random, index: Path, data: Path) -> None:
    """One byte of what fairseq knows a format by."""
    at(index, draw.randrange(17), draw.randbytes(1))


def cut(draw: random.Random, index: Path, data: Path) -> None:
    path = draw.choice([index, data])
    path.write_bytes(path.read_bytes()[: -draw.randint(1, path.stat().st_size)])


def old_count(draw: random.Random, index: Path, data: Path) -> None:
    counts = draw.choice([(2**40, 1), (1, 2**40), (2**62, 2**62), (10**9, 10**9)])
    head = struct.pack("<8sQQQQQ", b"TNTIDX\0\0", 1, 4, 4, *counts)
    index.write_bytes(head + np.zeros(9, np.int64).tobytes())


def old_sizes(draw: random.Random, index: Path, data: Path) -> None:
    head = struct.pack("<8sQQQQQ", b"TNTIDX\0\0", 1, 4, 4, 1, 1)
    values = draw.choice([(0, 1, 0, 10**12, 10**12), (0, 1, 0, 1, -5), (0, 1, 2**62, 2**62, 3)])
    index.write_bytes(head + np.array(values, np.int64).tobytes())


CHANGES = {
    "count": huge_count,
    "position": position,
    "size": size,
    "number": number,
    "type": code,
    "noise": noise,
    "head": head,
    "cut": cut,
    "old count": old_count,
    "old sizes": old_sizes,
}
