import json
import os
import re
import resource
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import safetensors.numpy
import torch

from hyptrans.geometry.space import Space
from hyptrans.support.errors import UserError
from probing.states.file import Contents, LeftOut, States, room_for, writing

LENGTHS = [3, 1, 4]
LAYERS, WIDTH = 2, 5


def contents(**changes):
    values = {
        "architecture": "hybonet",
        "encoder": "a.pt",
        "identity": "12",
        "random": False,
        "seed": 1,
        "trees": "ba\u00fcme.conllu",
        "trees_sha256": "34",
        "spaces": [Space("lorentz", 0.5), Space("lorentz", 2.0)],
        "kept": [0, 2, 5],
        "lengths": LENGTHS,
        "left_out": [LeftOut(1, "two", "word 3 has no piece"), LeftOut(3, "x", "9 tokens")],
        "unknown": 1,
        "split": 2,
    }
    return Contents(**{**values, **changes})


@pytest.fixture
def values(rng):
    return [torch.randn(length, LAYERS, WIDTH, generator=rng) for length in LENGTHS]


def write(path, values, order=(2, 0, 1)):
    with writing(path, contents(), WIDTH) as writer:
        for i in order:
            writer.write(i, values[i])
    return path


def test_what_was_written_in_any_order_is_read(tmp_path, values):
    states = States.open(write(tmp_path / "s.safetensors", values))
    assert states.contents == contents()
    assert (states.layers, states.width, len(states)) == (LAYERS, WIDTH, 3)
    assert states.spaces == [Space("lorentz", 0.5), Space("lorentz", 2.0)]
    assert (states.kept, states.lengths, states.contents.left_out[0].id) == (
        [0, 2, 5],
        LENGTHS,
        "two",
    )
    for i, value in enumerate(values):
        assert torch.equal(states.sentence(i), value.transpose(0, 1))


def test_file_is_one_that_safetensors_reads(tmp_path, values):
    path = write(tmp_path / "s.safetensors", values)
    found = safetensors.numpy.load_file(path)
    assert torch.equal(torch.from_numpy(found["states"]), torch.cat(values))
    # and writes alike, but for the order of the metadata
    with safetensors.safe_open(path, "np") as file:
        safetensors.numpy.save_file(found, tmp_path / "theirs", file.metadata())
    ours, theirs = path.read_bytes(), (tmp_path / "theirs").read_bytes()
    start = 8 + int.from_bytes(ours[:8], "little")
    assert start == 8 + int.from_bytes(theirs[:8], "little")
    assert (len(ours), ours[start:]) == (len(theirs), theirs[start:])


def test_batch_is_padded_with_zeros(tmp_path, values):
    states = States.open(write(tmp_path / "s.safetensors", values))
    batch, lengths = states.batch([1, 2])
    assert batch.shape == (LAYERS, 2, 4, WIDTH)
    assert lengths.tolist() == [1, 4]
    assert torch.equal(batch[:, 1], values[2].transpose(0, 1))
    assert torch.equal(batch[:, 0, :1], values[1].transpose(0, 1))
    assert not batch[:, 0, 1:].any()
    # a copy, not the file
    batch.zero_()
    assert torch.equal(states.sentence(2), values[2].transpose(0, 1))


@contextmanager
def limited(what, size):
    """The kernel's limit of this process, in bytes."""
    before = resource.getrlimit(what)
    resource.setrlimit(what, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(what, before)


def data_size():
    """Bytes of memory that are this process's own, used or not; mapped files are not among them."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmData:\s+(\d+) kB", status)[1]) << 10


def test_a_large_file_is_written_and_read_in_a_quarter_of_its_size(tmp_path, rng):
    lengths, width = [64] * 512, 512
    value = torch.randn(64, LAYERS, width, generator=rng)
    whole = len(lengths) * value.numel() * 4  # 128 MiB
    path, about = (
        tmp_path / "s",
        contents(lengths=lengths, kept=list(range(len(lengths))), left_out=[]),
    )
    with limited(resource.RLIMIT_DATA, data_size() + whole // 4):
        with pytest.raises(MemoryError):
            np.ones(whole, np.uint8)
        with writing(path, about, width) as writer:
            for i in range(len(lengths)):
                writer.write(i, value)
        states = States.open(path)
        assert all(torch.equal(states.batch([i])[0][:, 0, 1], value[1]) for i in range(512))
    assert path.stat().st_size > whole


def test_file_may_be_read_by_those_who_may_read_other_new_files(tmp_path, values):
    (tmp_path / "other").touch()
    path = write(tmp_path / "s", values)
    assert path.stat().st_mode == (tmp_path / "other").stat().st_mode


@pytest.mark.parametrize("room", [100, LAYERS * WIDTH * sum(LENGTHS) * 4], ids=["words", "header"])
def test_disk_without_room_is_told_and_leaves_nothing(tmp_path, values, room):
    with pytest.raises(OSError, match="File too large"), limited(resource.RLIMIT_FSIZE, room):
        write(tmp_path / "s", values)
    assert os.listdir(tmp_path) == []


def test_its_size_is_told_and_a_disk_with_less_room_refused(tmp_path, values, monkeypatch):
    path = write(tmp_path / "s", values)
    assert room_for(path, contents(), 100_000) == "6.4 MB"
    assert path.stat().st_size > sum(LENGTHS) * LAYERS * WIDTH * 4
    monkeypatch.setattr("shutil.disk_usage", lambda place: SimpleNamespace(free=5_000_000))
    with pytest.raises(UserError, match=r"s needs 6\.4 MB and its disk has 5\.0 MB left"):
        room_for(path, contents(), 100_000)


def test_file_appears_only_when_it_is_whole(tmp_path, values):
    path = tmp_path / "s.safetensors"
    with pytest.raises(ValueError, match="1 of 3 sentences are missing"):
        write(path, values, order=(0, 1))
    with pytest.raises(KeyboardInterrupt), writing(path, contents(), WIDTH):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []
    write(path, values)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="missing"):
        write(path, values, order=())
    assert path.read_bytes() == before


def test_states_of_another_shape_are_refused(tmp_path, values):
    with pytest.raises(ValueError, match="shape"), writing(tmp_path / "s", contents(), 5) as writer:
        writer.write(0, values[1])


@pytest.mark.parametrize(
    "damage", ["cut", "text", "foreign", "empty", "double", "short", "no layer", "two kinds"]
)
def test_damaged_file_is_named(tmp_path, values, damage):
    path = write(tmp_path / "s.safetensors", values)
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-8])
    elif damage == "text":
        path.write_text("hello, this is no file of states")
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "foreign":
        safetensors.numpy.save_file({"states": torch.zeros(2, 3, 4).numpy()}, path)
    else:
        with safetensors.safe_open(path, "np") as file:
            metadata, found = file.metadata(), file.get_tensor("states")
        about = json.loads(metadata["contents"])
        if damage == "double":
            found = found.astype(np.float64)
        elif damage == "short":
            found = found[1:].copy()
        elif damage == "no layer":
            found, about["spaces"] = found[:, :0].copy(), []
        else:
            about["spaces"][0]["kind"] = "euclidean"
        metadata["contents"] = json.dumps(about)
        safetensors.numpy.save_file({"states": found}, path, metadata)
    with pytest.raises(UserError, match=r"s\.safetensors is damaged .* extract"):
        States.open(path)


def test_missing_file_is_named(tmp_path):
    with pytest.raises(UserError, match="extract writes one"):
        States.open(tmp_path / "none")
