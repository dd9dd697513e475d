"""Parts of a pickle that hide others, or are odd by themselves, and zips of two readings."""

import contextlib
import io
import pickle
import random
import struct
import zipfile
from argparse import Namespace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import torch

from tests.hostile import checkpoints
from tests.hostile.checkpoints import build
from tests.hostile.pickles import Calls, Writer, zipped
from tests.hostile.running import Hostile, ordinary

HUGE = 10**12


class Built(Calls):
    """Pickles as a call and a state that what it made is given."""

    def __init__(self, state: object, name: str, *arguments: object) -> None:
        super().__init__(name, *arguments)
        self.state = state


class Stored:
    """Pickles as a reference to a storage."""

    def __init__(self, *parts: object) -> None:
        self.parts = parts


class Named(str):
    """Pickles as what has a name."""


class Full(Writer):
    """Writes states, references and names, too."""

    dispatch: ClassVar = dict(Writer.dispatch)

    def save_built(self, built: Built) -> None:
        self.save_calls(built)
        self.save(built.state)
        self.write(pickle.BUILD)

    def save_stored(self, stored: Stored) -> None:
        self.save(stored.parts)
        self.write(pickle.BINPERSID)

    def save_named(self, name: str) -> None:
        module, _, last = name.rpartition(".")
        self.write(f"c{module}\n{last}\n".encode())

    dispatch |= {Built: save_built, Stored: save_stored, Named: save_named}


def as_pickle(value: object) -> bytes:
    file = io.BytesIO()
    Full(file, 2).dump(value)
    return file.getvalue()


def plain(path: Path) -> None:
    """What is read is new and plain, in every part; and no model is larger than its file."""
    from pickle import UnpicklingError

    from hyptrans_startup.checkpoints.reader import read

    seen: set[int] = set()

    def look(value: Any) -> None:
        if isinstance(value, dict | list | Namespace):
            assert id(value) not in seen, "it is a part of two"
            seen.add(id(value))
        kinds = (dict, list, tuple, str, int, float, bool, type(None), torch.Tensor, Namespace)
        assert type(value) in kinds, type(value)
        assert isinstance(value, Namespace) or not getattr(value, "__dict__", None), (
            "it hides parts"
        )
        inner = vars(value) if isinstance(value, Namespace) else value
        for part in inner.values() if isinstance(inner, dict) else ():
            look(part)
        for part in inner if isinstance(inner, list | tuple) else ():
            look(part)

    try:
        with open(path, "rb") as file:
            look(read(file))
    except UnpicklingError:
        pass
    build(path)


_LARGE = {"encoder_layers": 900, "encoder_embed_dim": 1 << 16, "max_source_positions": 9 << 20}


def hidden(draw: random.Random, folder: Path, count: int) -> list[Hostile]:
    """Options where nobody looks: as attributes, in a state, in two places, under odd names."""
    cfg = checkpoints.stored("euclidean_tiny", folder.parent)["cfg"]
    model, ordered = vars(cfg["model"]), "collections.OrderedDict"
    shared: list = [1]
    shared.append(shared)
    namespace = "argparse.Namespace"
    kinds: dict[str, Any] = {
        "attributes": {**cfg, "model": Built(_LARGE, ordered)},
        "attributes of all": Built({**cfg, "model": {**model, **_LARGE}}, ordered),
        "attributes and slots": {**cfg, "model": Built((_LARGE, _LARGE), ordered)},
        "its own dictionary": {**cfg, "model": Built({"__dict__": _LARGE}, namespace)},
        "its own class": {**cfg, "model": Built({"__class__": "x", **_LARGE}, namespace)},
        "methods": {**cfg, "model": Built({"items": 1, "get": None, "keys": []}, namespace)},
        "arguments": {**cfg, "model": Calls(namespace, 1, _LARGE)},
        "pairs": {**cfg, "model": Calls(ordered, [[a, b] for a, b in _LARGE.items()])},
        "a state of texts": {**cfg, "model": Built("x", namespace)},
        "names of numbers": {**cfg, "model": Built({1: 2, None: 3}, namespace)},
        "one part twice": {**cfg, "model": model, "task": model},
        "itself": {**cfg, "model": {**model, "x": shared}},
        "options in options": {**cfg, "model": Built({"a": Built(_LARGE, namespace)}, namespace)},
    }
    whole = {**cfg, "model": Built(model, namespace)}
    path = zipped(folder / "whole.pt", as_pickle({"cfg": whole, "model": {}, "args": None}))
    read = partial(_read, path)
    tries = [ordinary(read)]
    for i, name in enumerate(draw.sample(list(kinds), count)):
        state = {"cfg": kinds[name], "model": {}, "args": None}
        path = zipped(folder / f"hidden{i}.pt", as_pickle(state))
        tries.append(Hostile(name, partial(plain, path)))
    return tries


def _read(path: Path) -> None:
    from hyptrans_startup.checkpoints.reader import read

    with open(path, "rb") as file:
        assert "cfg" in read(file)


_STORED = Stored("storage", Named("torch.FloatStorage"), "0", "cpu", 4)


def _tensor(*parts: object) -> Calls:
    """A tensor, with some of its parts replaced by their places."""
    usual = (_STORED, 0, (2, 2), (2, 1), False, Calls("collections.OrderedDict"))
    return Calls("torch._utils._rebuild_tensor_v2", *parts, *usual[len(parts) :])


def _array(*state: object, code: str = "f4") -> Built:
    dtype = Built((3, "<", None, None, None, -1, -1, 0), "numpy.dtype", code, False, True)
    usual = (1, (4,), dtype, False, Calls("_codecs.encode", "\0" * 16, "latin1"))
    made = "numpy.core.multiarray._reconstruct"
    whole = (*state, *usual[len(state) :])
    return Built(whole, made, Named("numpy.ndarray"), (0,), b"b".decode())


def _dtype(*state: object, code: str = "f8") -> Built:
    return Built(state, "numpy.dtype", code, False, True)


ODD: dict[str, Any] = {
    "strides below zero": _tensor(_STORED, 3, (2, 2), (-2, -1)),
    "an offset below zero": _tensor(_STORED, -1),
    "an offset outside": _tensor(_STORED, 2**62),
    "sizes that are no numbers": _tensor(_STORED, 0, (2.0, True), (2, 1)),
    "more strides than sizes": _tensor(_STORED, 0, (2,), (2, 1)),
    "many dimensions": _tensor(_STORED, 0, (1,) * 99, (1,) * 99),
    "nothing of much": _tensor(_STORED, 0, (0, HUGE), (1, 1)),
    "hooks": _tensor(_STORED, 0, (2, 2), (2, 1), "x", {"a": Calls("os.system", "x")}),
    "one number for many": _tensor(_STORED, 0, (HUGE,), (0,)),
    "no storage": _tensor("x"),
    "a quantized storage": _tensor(Stored("storage", Named("torch.QInt8Storage"), "0", "cpu", 4)),
    "a storage by a number": _tensor(Stored("storage", Named("torch.FloatStorage"), 0.5, "cpu", 4)),
    "a view": _tensor(Stored("storage", Named("torch.FloatStorage"), "0", "cpu", 4, (1, 2))),
    "a reference of texts": _tensor(Stored("a", "b", "c", "d", "e")),
    "a reference of nothing": _tensor(Stored()),
    "a storage below zero": _tensor(Stored("storage", Named("torch.FloatStorage"), "0", "cpu", -4)),
    "two storages of one name": [
        _tensor(),
        _tensor(Stored("storage", Named("torch.DoubleStorage"), "0", "cpu", 4)),
    ],
    "a parameter of no tensor": Calls("torch._utils._rebuild_parameter", 1, True, {}),
    "a size of sizes": Calls("torch.Size", [[1], "x"]),
    "a device": Calls("torch.device", "x" * 10**6, [1]),
    "objects in an array": _array(code="O8"),
    "texts in an array": _array(code="U999999999"),
    "a large array": _array(1, (HUGE,)),
    "an array below zero": _array(1, (-4,)),
    "an array of columns": _array(1, (4,), _dtype(3, "<", None, None, None, -1, -1, 0), True),
    "an array of lists": _array(1, (4,), _dtype(3, "<", None, None, None, -1, -1, 0), False, [1]),
    "an array of nothing": _array(1, (4,), None, False, None),
    "a short state of an array": Built((1,), "numpy.core.multiarray._reconstruct", 1, (0,), "b"),
    "fields of a dtype": _dtype(3, "<", None, ("a",), {"a": 1}, 8, 8, 0),
    "an order of a dtype": _dtype(3, "x" * 99, None, None, None, -1, -1, 0),
    "a short state of a dtype": _dtype(3),
    "a number of too few bytes": Calls("numpy.core.multiarray.scalar", _dtype(), "x"),
    "a number of a dtype without an order": Calls("numpy.core.multiarray.scalar", 1, "x"),
    "codes of another kind": Calls("_codecs.encode", "x" * 99, "idna"),
    "a class as a function": Calls("numpy.ndarray", (HUGE,)),
}
"""Each is read as what it is, or refused; none is a traceback or takes memory."""


def odd(draw: random.Random, folder: Path, count: int) -> list[Hostile]:
    """Tensors, arrays and numbers whose metadata nobody writes, in every part of a checkpoint."""
    state = {"cfg": None, "args": None, "model": {}, "extra_state": {}}
    storage = {"data/0": bytes(16)}
    good = zipped(folder / "whole.pt", as_pickle({**state, "cfg": {"a": _tensor()}}), **storage)
    tries = [ordinary(partial(_read, good))]
    for i, name in enumerate(draw.sample(list(ODD), count)):
        where = draw.choice(["model", "extra_state", "task_state", "cfg"])
        data = as_pickle({**state, where: {"x": ODD[name]}})
        path = zipped(folder / f"odd{i}.pt", data, **storage)
        tries.append(Hostile(f"{name} in {where}", partial(plain, path)))
    return tries


def _pickle(which: str) -> bytes:
    return (
        b"\x80\x02}X\x05\x00\x00\x00whichX" + struct.pack("<I", len(which)) + which.encode() + b"s."
    )


def one_reading(path: Path) -> None:
    """What is read is what Python's reader finds, and torch's, or all is refused."""
    from pickle import UnpicklingError

    from hyptrans_startup.checkpoints.reader import read

    try:
        with open(path, "rb") as file:
            found = read(file)["which"]
    except UnpicklingError:
        return
    with zipfile.ZipFile(path) as archive:
        first = archive.namelist()[0].partition("/")[0]
        assert _pickle(found) == archive.read(f"{first}/data.pkl"), "Python reads another"
    with contextlib.suppress(RuntimeError):
        assert torch.load(path, weights_only=True)["which"] == found, "torch reads another"


def _entries(*entries: tuple[bytes, bytes, bytes], start: bytes = b"", **change: int) -> bytes:
    """A zip of entries: their names before their content, in the list, and the content."""
    import zlib

    body, listed = start, b""
    for local, name, content in entries:
        numbers = (zlib.crc32(content), len(content), len(content))
        flags, method = change.get("flags", 0), change.get("method", 0)
        listed += struct.pack("<4s6H3L5H2L", b"PK\1\2", 20, 20, flags, method, 0, 0, *numbers,
            len(name), 0, 0, 0, 0, 0, len(body) - change.get("off", 0)) + name  # fmt: skip
        body += struct.pack(
            "<4s5H3L2H", b"PK\3\4", 20, flags, method, 0, 0, *numbers, len(local), 0
        )
        body += local + content
    end = (0, 0, len(entries), len(entries) + change.get("more", 0), len(listed), len(body), 0)
    return body + listed + struct.pack("<4s4H2LH", b"PK\5\6", *end)


def readings(draw: random.Random, folder: Path, count: int) -> list[Hostile]:
    """Zips in which one reader finds another pickle than the next one."""
    a, b, name = _pickle("first"), _pickle("other"), b"a/data.pkl"
    version = (b"a/version", b"a/version", b"3\n")
    good = _entries((name, name, a), version)
    kinds = {
        "one name twice": _entries((name, name, a), (name, name, b), version),
        "a zero in a name": _entries((b"a/data.pkl\0x",) * 2 + (b,), (name, name, a), version),
        "another name before the content": _entries((b"a/data.xxx", name, b), (name,) * 2 + (a,)),
        "a name in capitals": _entries((b"A/DATA.PKL",) * 2 + (b,), (name, name, a), version),
        "a name with a backslash": _entries((b"a\\data.pkl",) * 2 + (b,), (name, name, a), version),
        "a name from above": _entries((b"a/../a/data.pkl",) * 2 + (b,), (name, name, a), version),
        "a name from the root": _entries((b"/a/data.pkl",) * 2 + (b,), (name, name, a), version),
        "another folder": _entries((b"b/data.pkl",) * 2 + (b,), (name, name, a), version),
        "a name of other letters": _entries((b"a/d\xc3\xa4ta.pkl",) * 2 + (b,), (name, name, a)),
        "a zip before it": _entries((name, name, b), version) + good,
        "a zip behind it": good + _entries((name, name, b), version),
        "a start that no list counts": _entries((name, name, a), version, start=b"x" * 9),
        "places from elsewhere": _entries((name, name, a), version, off=-1),
        "a list that counts more": _entries((name, name, a), version, more=1),
        "encrypted": _entries((name, name, a), version, flags=1),
        "sizes behind the content": _entries((name, name, a), version, flags=8),
        "compressed": _entries((name, name, a), version, method=8),
        "a comment with an end": good[:-2] + b"\x16\0" + good[-22:],
        "bytes behind it": good + b"x" * 9,
        "bytes before it": b"PK" + good,
    }
    whole = folder / "whole.pt"
    whole.write_bytes(good)
    tries = [ordinary(partial(one_reading, whole)), ordinary(partial(_which, whole))]
    for i, kind in enumerate(draw.sample(list(kinds), count)):
        path = folder / f"readings{i}.pt"
        path.write_bytes(kinds[kind])
        tries.append(Hostile(kind, partial(one_reading, path)))
    return tries


def _which(path: Path) -> None:
    from hyptrans_startup.checkpoints.reader import read

    with open(path, "rb") as file:
        assert read(file) == {"which": "first"}
