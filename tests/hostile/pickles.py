"""Checkpoints whose pickle or zip is not what torch writes."""

import collections
import io
import pickle
import random
import re
import struct
import zipfile
from functools import partial
from pathlib import Path
from typing import ClassVar

from tests.hostile.checkpoints import build, written
from tests.hostile.running import RAN, Hostile, ordinary

NUMBER = rb"(?s:K.|M..|J....)"
"""A number in a pickle, of one, two or four bytes."""


class Calls:
    """Pickles as a call of anything, by its name."""

    def __init__(self, name: str, *arguments: object) -> None:
        self.name, self.arguments = name, arguments


class Writer(pickle._Pickler):  # the one in Python, which can be told what to write
    """Writes `Calls`, and tensors as torch does, without storages."""

    dispatch: ClassVar = dict(pickle._Pickler.dispatch)

    def save_calls(self, call: Calls) -> None:
        module, _, name = call.name.rpartition(".")
        self.write(b"c" + f"{module}\n{name}\n".encode())
        self.save(call.arguments)
        self.write(pickle.REDUCE)

    dispatch[Calls] = save_calls


def as_pickle(value: object) -> bytes:
    file = io.BytesIO()
    Writer(file, 2).dump(value)
    return file.getvalue()


def zipped(path: Path, data: bytes, compression: int = zipfile.ZIP_STORED, **more: bytes) -> Path:
    """A checkpoint with any bytes for its pickle."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in {"data.pkl": data, "version": b"3\n", **more}.items():
            archive.writestr(f"a/{name}", content)
    return path


def calls(draw: random.Random, folder: Path, count: int) -> list[Hostile]:
    """Names of functions in a pickle, with arguments that run code or take memory."""
    huge = 10 ** draw.randint(9, 13)
    shell = f"touch {RAN}"
    kinds = [
        Calls("os.system", shell),
        Calls("posix.system", shell),
        Calls("builtins.eval", f"open('{RAN}','w')"),
        Calls("builtins.exec", f"open('{RAN}','w')"),
        Calls("builtins.getattr", Calls("os.path"), "os"),
        Calls("subprocess.Popen", ["touch", RAN]),
        Calls("importlib.import_module", "this"),
        Calls("torch.hub.load", "x/y", "z"),
        Calls("torch.load", "/etc/passwd"),
        Calls("runpy.run_path", "/etc/passwd"),
        Calls("fairseq.utils.eval_bool", f"open('{RAN}','w')"),
        Calls("hyptrans_startup.install"),
        Calls("builtins.bytearray", huge),
        Calls("numpy.ndarray", (huge,)),
        Calls("torch.FloatTensor", huge),
        Calls("torch.Tensor", huge),
        Calls("numpy.core.multiarray._reconstruct", Calls("numpy.ndarray"), (huge,), b"b"),
        Calls("collections.OrderedDict", [[(1, 2), 3]]),
        Calls("builtins.set", [((1,),)]),
        Calls("_codecs.decode", b"x" * 9, "zlib"),
        Calls("torch._utils._rebuild_tensor_v2", None, 0, (huge,), (1,), False, {}),
        Calls("torch._tensor._rebuild_from_type_v2", Calls("os.system"), (), (shell,), {}),
    ]
    tries = []
    for i, call in enumerate(draw.sample(kinds, min(count, len(kinds)))):
        where = draw.choice(["cfg", "model", "extra_state", "anything"])
        path = zipped(folder / f"calls{i}.pt", as_pickle({"model": {}, where: {"x": call}}))
        tries.append(Hostile(call.name, partial(build, path)))
    return tries


def keys(draw: random.Random, folder: Path, count: int) -> list[Hostile]:
    """Dictionaries whose keys take hours to hash, and pickles that go on and on."""
    tries = []
    for i in range(count):
        kind = draw.choice(["tuples", "integers", "deep", "long", "text", "memo"])
        if kind == "tuples":
            data = b"\x80\x02}" + tuple_in_tuple(draw.randint(25, 60)) + b"K\x01s."
        elif kind == "integers":
            prime = (1 << 61) - 1
            same = {j * prime: j for j in range(1 << 8, 1 << 13)}
            data = as_pickle({"cfg": same})
        elif kind == "deep":
            data = b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b"."
        elif kind == "long":
            data = b"\x80\x02](" + b"}" * draw.randint(10**6, 10**7) + b"e."
        elif kind == "text":
            data = b"\x80\x02X" + struct.pack("<I", 2**32 - draw.randint(1, 99)) + b"x."
        else:
            data = b"\x80\x02]r" + struct.pack("<I", 2**32 - 1) + b"h\x05."
        path = zipped(folder / f"keys{i}.pt", data)
        tries.append(Hostile(kind, partial(build, path)))
    return tries


def tuple_in_tuple(times: int) -> bytes:
    data = b")q\x00"
    for i in range(times):
        data += b"h" + bytes([i]) + b"\x86q" + bytes([i + 1])
    return data


def claims(draw: random.Random, folder: Path, state: dict, count: int) -> list[Hostile]:
    """Tensors larger than what the file has for them."""
    whole = written(state, folder / "whole.pt")
    with zipfile.ZipFile(whole) as archive:
        records = {name: archive.read(name) for name in archive.namelist()}
    name = next(name for name in records if name.endswith("/data.pkl"))
    tries = [ordinary(partial(build, whole))]
    for i in range(count):
        changed, kind = dict(records), draw.choice(["elements", "shape", "cut", "gone", "deflated"])
        size = draw.choice([2**31 - 1, 2**24, 2**20])
        if kind == "elements":
            changed[name] = replaced(records[name], rb"t(?=[qr])", b"t", size)
        elif kind == "shape":
            changed[name] = replaced(records[name], rb"\x85", b"\x85", size)
        elif kind in ("cut", "gone"):
            record = draw.choice([key for key in records if "/data/" in key and records[key]])
            changed[record] = changed[record][: len(changed[record]) // 2]
            if kind == "gone":
                del changed[record]
        compression = zipfile.ZIP_DEFLATED if kind == "deflated" else zipfile.ZIP_STORED
        path = folder / f"claims{i}.pt"
        with zipfile.ZipFile(path, "w", compression) as archive:
            for record, content in changed.items():
                archive.writestr(record, content)
        tries.append(Hostile(f"{kind} {size}", partial(build, path)))
    return tries


def replaced(data: bytes, behind: bytes, kept: bytes, size: int) -> bytes:
    """A pickle with a larger number before every place that matches."""
    return re.sub(NUMBER + behind, lambda _: b"J" + struct.pack("<i", size) + kept, data)


def containers(draw: random.Random, folder: Path, state: dict, count: int) -> list[Hostile]:
    """Files that are cut, changed at random, of the older format, of another, or zips of zips."""
    new = written(state, folder / "new.pt").read_bytes()
    old = written(state, folder / "old.pt", _use_new_zipfile_serialization=False).read_bytes()
    tries = [ordinary(partial(build, folder / f"{name}.pt")) for name in ("new", "old")]
    for i in range(count):
        kind = draw.choice(
            ["cut", "changed", "old cut", "old changed", "other", "appended", "bomb"]
        )
        data = bytearray(old if kind.startswith("old") else new)
        if kind.endswith("cut"):
            del data[draw.randrange(len(data)) :]
        elif kind.endswith("changed"):
            for _ in range(draw.randint(1, 40)):
                start = 0 if draw.random() < 0.5 else max(len(data) - 4000, 0)
                data[draw.randrange(start, min(start + 4000, len(data)))] = draw.randrange(256)
        elif kind == "other":
            data = bytearray(
                draw.choice([b"", b"PK", b"\x80", b"ustar" * 200, draw.randbytes(999)])
            )
        elif kind == "appended":
            data += draw.randbytes(draw.randint(1, 99))
        path = folder / f"container{i}.pt"
        path.write_bytes(data)
        if kind == "bomb":
            zipped(path, b"\x80\x02" + bytes(1 << 27), zipfile.ZIP_DEFLATED)
        tries.append(Hostile(kind, partial(build, path)))
    return tries


def statistics(draw: random.Random, folder: Path, count: int) -> list[Hostile]:
    """Classes of statistics by any name, as training reads them when it goes on."""
    from hyptrans_startup.training.progress import check_progress
    from hyptrans_startup.training.resuming import stored_training

    # what the message has to name is a file of the folder
    stored_in = folder / "c.pt"
    stored_in.touch()

    def go_on(statistics: dict) -> None:
        state = {"extra_state": {"metrics": statistics}}
        stored_training(lambda *_: check_progress(state), None, str(stored_in))

    value = collections.OrderedDict(val=1, sum=1, count=1, round=3)
    good = {"default": [(0, "loss", "AverageMeter", value)]}
    tries = [ordinary(partial(go_on, good))]
    for _ in range(count):
        name = draw.choice(["os", "time", "torch", "exit", "__builtins__", "bisect", "MetersDict"])
        name = draw.choice([name, "type_as", "safe_round", "OrderedDict", "Dict", 3, None, [1]])
        stored = {"default": [(0, "loss", name, collections.OrderedDict(val=1))]}
        tries.append(Hostile(f"meter {name}", partial(go_on, stored)))
    return tries
