"""The reader of checkpoints against torch's own, and against files that torch never wrote."""

import collections
import io
import math
import os
import pickle
import random
import resource
import statistics
import struct
import subprocess
import sys
import time
import zipfile
from argparse import Namespace
from pathlib import Path
from pickle import UnpicklingError

import numpy as np
import pytest
import torch

from hyptrans_startup.checkpoints import instructions, reader
from tests.startup.conftest import TINY

BASE = torch.arange(12.0).reshape(3, 4)
VALUES = {
    "plain": {"a": [1, -1, 255, 256, 65536, -(2**31), 2**40, 2**64, 1.5, math.inf, True, None, ()]},
    "text": {"é": "x" * 300, "": "\u4e2d\n", "lone": "\udc80"},
    "tuples": [(1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), ((), [], {})],
    "options": Namespace(lr=[0.1], arch="x", inner=Namespace(a=1)),
    "ordered": collections.OrderedDict(b=1, a=torch.ones(2)),
    "views": [BASE, BASE.t(), BASE[1], BASE[:, 1:3], BASE[2, 3], BASE[:0]],
    "parameter": torch.nn.Parameter(torch.randn(2, 2)),
    "size": torch.Size([2, 3]),
    "state": torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3)).state_dict(),
    "many": [list(range(2000)), {i: str(i) for i in range(2000)}],
    **{
        str(kind): torch.tensor([1, 0, 3]).to(kind)
        for kind in map(torch.__dict__.get, instructions.WIDTHS)
    },
    "numpy": [np.float64(2.5), np.int64(-3), np.bool_(True), np.array([1, 2]), np.array([[1.5]])],
}


def written(value, legacy=False):
    file = io.BytesIO()
    torch.save(value, file, _use_new_zipfile_serialization=not legacy)
    return file


def assert_same(found, wanted):
    if isinstance(wanted, np.ndarray):
        wanted = torch.from_numpy(wanted)
    if isinstance(wanted, torch.Tensor):
        assert type(found) is torch.Tensor
        assert found.dtype == wanted.dtype
        assert found.stride() == wanted.stride()
        assert torch.equal(found, wanted.detach())
    elif isinstance(wanted, dict):
        assert type(found) is dict
        assert list(found) == list(wanted)
        for key in wanted:
            assert_same(found[key], wanted[key])
    elif isinstance(wanted, list | tuple):
        assert type(found) is (list if isinstance(wanted, list) else tuple)
        for one, other in zip(found, wanted, strict=True):
            assert_same(one, other)
    elif isinstance(wanted, Namespace):
        assert type(found) is Namespace
        assert_same(vars(found), vars(wanted))
    else:
        assert type(found) is type(wanted.item() if isinstance(wanted, np.generic) else wanted)
        assert found == wanted


@pytest.mark.parametrize("legacy", [False, True], ids=["zip", "stream"])
@pytest.mark.parametrize("name", VALUES)
def test_what_torch_writes_is_read_as_torch_reads_it(name, legacy):
    file = written(VALUES[name], legacy)
    assert_same(reader.read(file), torch.load(file.seek(0) or file, weights_only=False))


@pytest.mark.parametrize("legacy", [False, True], ids=["zip", "stream"])
def test_where_a_program_makes_its_tensors_changes_nothing(legacy):
    file = written({"a": BASE}, legacy)
    with torch.device("meta"):
        found = reader.read(file)["a"]
    assert found.device.type == "cpu"
    assert torch.equal(found, BASE)


def test_tensors_of_one_storage_share_it_and_nothing_else_is_shared():
    shared = [1]
    found = reader.read(written({"a": BASE, "b": BASE[1], "c": shared, "d": shared}))
    found["b"][0] = 100
    assert found["a"][1, 0] == 100
    found["c"].append(2)
    assert found["d"] == [1]


def test_attributes_of_a_dictionary_are_not_there():
    hidden = collections.OrderedDict(a=1)
    hidden.secret = [1] * 3
    found = reader.read(written(hidden))
    assert (type(found), found, hasattr(found, "secret")) == (dict, {"a": 1}, False)


def test_lists_in_lists_without_end_are_refused():
    inner = []
    inner.append(inner)
    doubled = [1]
    for _ in range(40):
        doubled = [doubled, doubled]
    for value in (inner, doubled):
        with pytest.raises(UnpicklingError, match="without end"):
            reader.read(written(value))


def in_zip(data, **more):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in {"data.pkl": data, **more}.items():
            archive.writestr(f"a/{name}", content)
    return file


def test_instructions_that_torch_does_not_write_are_refused():
    for code in range(256):
        if bytes([code]) not in {*instructions._INSTRUCTIONS, b"."}:
            with pytest.raises(UnpicklingError, match="which torch does not write"):
                reader.read(in_zip(b"\x80\x02" + bytes([code])))


@pytest.mark.parametrize(
    "name",
    [
        "os system",
        "builtins eval",
        "torch load",
        "numpy load",
        "collections Counter",
        "torch FooStorage",
    ],
)
def test_other_names_are_refused_by_name(name):
    data = b"\x80\x02c" + name.replace(" ", "\n").encode() + b"\n)R."
    with pytest.raises(UnpicklingError, match=f"GLOBAL {name.replace(' ', '.')}$"):
        reader.read(in_zip(data))


class Written:
    """Pickled as a call."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def tensor(elements, offset, sizes, strides, key="0"):
    """A tensor in a pickle of protocol 2, of a storage of 8 bytes."""

    class Pickler(pickle.Pickler):
        def persistent_id(self, obj):
            return ("storage", torch.FloatStorage, key, "cpu", elements) if obj == "here" else None

    file = io.BytesIO()
    rebuild = torch._utils._rebuild_tensor_v2
    hooks = collections.OrderedDict()
    Pickler(file, 2).dump(Written(rebuild, "here", offset, sizes, strides, False, hooks))
    return in_zip(file.getvalue(), **{"data/0": struct.pack("<2f", 1, 2)})


def test_a_tensor_lies_within_its_storage():
    assert reader.read(tensor(2, 0, (2,), (1,))).tolist() == [1, 2]
    assert reader.read(tensor(2, 1, (1,), (1,))).tolist() == [2]
    for wrong in [
        (3, 0, (3,), (1,)),
        (2, 1, (2,), (1,)),
        (2, 0, (2,), (2,)),
        (2, -1, (1,), (1,)),
        (2, 0, (-1,), (1,)),
        (2, 1, (2,), (-1,)),
        (2, 0, (10**12,), (0,)),
        (2, 0, (3,), (0,)),
        (2, 0, (1,) * 65, (1,) * 65),
        (10**12, 0, (10**12,), (1,)),
        (-1, 0, (0,), (1,)),
        (2, 0, (1.0,), (1,)),
        (2, 0, (1,), (1, 1)),
        (2, 0, (1,), (1,), "1"),
    ]:
        with pytest.raises(UnpicklingError):
            reader.read(tensor(*wrong))


@pytest.mark.parametrize("legacy", [False, True], ids=["zip", "stream"])
def test_a_file_cut_anywhere_is_refused(legacy):
    content = written(VALUES["state"], legacy).getvalue()
    for length in [*range(40), *range(40, len(content), 7), len(content) - 1]:
        with pytest.raises(UnpicklingError):
            reader.read(io.BytesIO(content[:length]))


@pytest.mark.parametrize("legacy", [False, True], ids=["zip", "stream"])
def test_a_changed_file_is_read_or_refused(legacy):
    draw = random.Random(1)
    value = {"model": VALUES["state"], "cfg": VALUES["options"], "extra": VALUES["numpy"]}
    content = written(value, legacy).getvalue()
    refused = 0
    for _ in range(1500):
        changed = bytearray(content)
        for _ in range(draw.randint(1, 4)):
            changed[draw.randrange(len(changed))] = draw.randrange(256)
        try:
            reader.read(io.BytesIO(bytes(changed)))
        except UnpicklingError:
            refused += 1
    assert refused > 300


def test_files_in_a_zip_do_not_overlap_nor_have_one_name():
    content = bytearray(written([torch.zeros(100), torch.ones(100)]).getvalue())
    with zipfile.ZipFile(io.BytesIO(bytes(content))) as archive:
        first, second = (archive.getinfo(f"archive/data/{i}").header_offset for i in (0, 1))
    # the second begins where the first does, by the list at the end
    place = content.rindex(struct.pack("<L", second), content.index(b"PK\x01\x02"))
    content[place : place + 4] = struct.pack("<L", first)
    with pytest.raises(UnpicklingError, match="overlap"):
        reader.read(io.BytesIO(bytes(content)))
    twice = in_zip(pickle.dumps(1, 2), **{"data.pkm": b""}).getvalue()
    with pytest.raises(UnpicklingError, match="one name"):
        reader.read(io.BytesIO(twice.replace(b"a/data.pkm", b"a/data.pkl")))


def test_a_compressed_file_or_another_is_refused():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/data.pkl", pickle.dumps("x" * 999, 2))
    with pytest.raises(UnpicklingError, match="compressed"):
        reader.read(file)
    for content in (b"", b"PK", b"x" * 99, written(1).getvalue() + b"x"):
        with pytest.raises(UnpicklingError):
            reader.read(io.BytesIO(content))


HYPERBOLIC = ["--user-dir=hyptrans", "--arch=hybonet_tiny", "--optimizer=riemannian_adam"]


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(
            ["--eval-bleu", '--eval-bleu-args={"beam": 1}', "--best-checkpoint-metric=bleu"],
            marks=pytest.mark.slow,
            id="bleu",
        ),
        pytest.param(["--optimizer=nag", "--bf16"], marks=pytest.mark.slow, id="bf16"),
        pytest.param(HYPERBOLIC, id="points"),
    ],
)
def test_what_a_training_writes_is_read_and_gone_on_with(options, work, data, fork, tmp_path):
    save = tmp_path / "ck"
    command = ["fairseq-train", data, *TINY, *options, "--save-dir", save]
    fork(*command, "--max-update=2", cwd=work)
    last = save / "checkpoint_last.pt"
    content = last.read_bytes()
    wanted = torch.load(last, weights_only=False)
    assert_same(reader.read(io.BytesIO(content)), wanted)
    file = written(wanted, legacy=True)
    assert_same(reader.read(file), wanted)
    done = fork(*command, "--max-update=4", cwd=work)
    assert "Loaded checkpoint" in done.stdout + done.stderr
    assert torch.load(last, weights_only=False)["optimizer_history"][-1]["num_updates"] == 4


@pytest.mark.slow
def test_a_fuzzer_finds_neither_another_error_nor_anything_that_no_checkpoint_needs(tmp_path):
    """Half a minute of it; ``python -m tests.startup.checkpoints.fuzz`` takes as long as asked."""
    pytest.importorskip("atheris")
    command = [sys.executable, "-m", "tests.startup.checkpoints.fuzz", "--seconds=30"]
    # what it finds, it writes into the present folder
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[3]), *sys.path])
    }
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Done" in done.stderr


def test_a_stream_whose_second_part_is_no_dictionary_is_refused():
    parts = [pickle.dumps(part, protocol=2) for part in (1001, "little_endian", {}, [])]
    file = io.BytesIO(written({}, legacy=True).getvalue()[: len(reader._LEGACY)] + b"".join(parts))
    with pytest.raises(UnpicklingError, match="not as torch writes them"):
        reader.read(file)


def cost(read, path):
    """Bytes of memory at the peak and seconds of computing, of a fork that reads a file."""
    get, put = os.pipe()
    child = os.fork()
    if child == 0:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        begin = time.process_time()
        with open(path, "rb") as file:
            kept = read(file)
        seconds = time.process_time() - begin
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        os.write(put, f"{peak << 10} {seconds} {len(kept)}".encode())
        os._exit(0)
    os.close(put)
    with open(get, "rb") as pipe:
        found = pipe.read().split()
    os.waitpid(child, 0)
    return float(found[0]), float(found[1])


@pytest.mark.slow
@pytest.mark.parametrize("moments", [False, True], ids=["parameters", "optimizer's state, too"])
def test_200_mb_cost_no_more_than_1_3_times_what_torch_takes(moments, tmp_path, capsys):
    path = tmp_path / "large.pt"
    child = os.fork()  # so that nothing is left here that a reader may take again
    if child == 0:
        tables = [torch.randn(512, 512) for _ in range(64 if moments else 192)]
        state = {"model": {f"layer{i}": each for i, each in enumerate(tables)}}
        if moments:
            kept = [{"step": 3, "exp_avg": each + 1, "exp_avg_sq": each + 2} for each in tables]
            state["last_optimizer_state"] = {"state": dict(enumerate(kept))}
        torch.save(state, path)
        os._exit(0)
    os.waitpid(child, 0)
    assert path.stat().st_size > 200e6
    readers = {"ours": reader.read, "torch": lambda file: torch.load(file, weights_only=False)}
    turns = [{name: cost(read, path) for name, read in readers.items()} for _ in range(6)]
    medians = {
        name: [statistics.median(turn[name][i] for turn in turns[1:]) for i in range(2)]
        for name in readers
    }
    with capsys.disabled():
        for name, (peak, seconds) in medians.items():
            print(f"\n{name}: {peak / 2**20:.0f} MiB, {seconds:.3f} s", end="")  # noqa: T201
    for ours, theirs in zip(*medians.values(), strict=True):
        assert ours <= 1.3 * theirs
