"""A structured fuzzer of the reader of checkpoints: pickles in sound containers, and containers.

Whatever the bytes, the reader makes something of plain values and tensors alone, or refuses the
file by the one error that it names; in time, and within memory that the file accounts for.

example: python -m tests.startup.checkpoints.fuzz --seconds 600
"""

import argparse
import io
import resource
import sys
import tempfile
import zipfile
from argparse import Namespace
from pathlib import Path
from pickle import UnpicklingError

import atheris

with atheris.instrument_imports(include=["hyptrans_startup"]):
    from hyptrans_startup.checkpoints import instructions, reader  # noqa: F401

import torch

PLAIN = (str, int, float, bool, type(None))
STORAGES = 4
FORMS = 3
"""What the first byte of an input tells: its other bytes are the pickle of a zip, the old stream
of torch, or a zip."""


def whole(form, content):
    """The file that an input stands for."""
    if form:
        return io.BytesIO(content)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as container:
        container.writestr("archive/data.pkl", content)
        container.writestr("archive/byteorder", "little")
        for number in range(STORAGES):
            container.writestr(f"archive/data/{number}", bytes(64))
        container.writestr("archive/version", "3\n")
    file.seek(0)
    return file


def check(value):
    """That nothing is in a value that no checkpoint needs."""
    left = [value]
    while left:
        one = left.pop()
        if type(one) is dict:
            left += [*one, *one.values()]
        elif type(one) in (list, tuple):
            left += one
        elif type(one) is Namespace:
            left += vars(one).values()
        else:
            assert type(one) in (*PLAIN, torch.Tensor), type(one)


def one_input(given):
    if not given:
        return
    try:
        check(reader.read(whole(given[0] % FORMS, given[1:])))
    except UnpicklingError:
        return


def seeds(folder):
    """Files that torch writes, as inputs to start from."""
    base = torch.arange(6.0)
    values = [
        {
            "model": {"a": base[:4].reshape(2, 2), "b": base[2:]},
            "args": Namespace(lr=[0.1], x=None),
        },
        [1, -1, 2**40, 1.5, True, None, "text", (1, (2, (3,))), {"k": [{}]}],
        {"p": torch.nn.Parameter(base), "size": torch.Size([1, 2]), "half": base.half()},
        {"n": [base.numpy()[1], base.numpy()]},
    ]
    for number, value in enumerate(values):
        for legacy in (False, True):
            file = io.BytesIO()
            torch.save(value, file, _use_new_zipfile_serialization=not legacy)
            (folder / f"{number}-{legacy}").write_bytes(bytes([2 - legacy]) + file.getvalue())
            if not legacy:
                with zipfile.ZipFile(file) as container:
                    (name,) = [n for n in container.namelist() if n.endswith("data.pkl")]
                    (folder / f"{number}-pickle").write_bytes(b"\0" + container.read(name))


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=int, default=600, help="how long (default: 600)")
    parser.add_argument("--seed", type=int, default=1, help="of the mutations (default: 1)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        seeds(Path(name))
        # the largest size so far is that of whoever started this process, too
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024 + 1000
        limits = ["-timeout=5", f"-rss_limit_mb={most}", "-max_len=8192", "-print_final_stats=1"]
        options = [f"-max_total_time={args.seconds}", f"-seed={args.seed}", *limits]
        atheris.Setup([sys.argv[0], *options, name], one_input)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
