import mmap

import pytest
import safetensors.numpy
import torch

from hyptrans.geometry.space import Space
from hyptrans.support.errors import UserError
from probing.states.file import Contents, LeftOut, States, writing

LENGTHS = [3, 1, 4]
LAYERS, WIDTH = 2, 5


def contents(**changes):
    values = {
        "architecture": "hybonet",
        "checkpoint": "a.pt",
        "checkpoint_sha256": "12",
        "random": False,
        "seed": 1,
        "trees": "ba\u00fcme.conllu",
        "trees_sha256": "34",
        "spaces": [Space("lorentz", 0.5), Space("euclidean")],
        "kept": [0, 2, 5],
        "lengths": LENGTHS,
        "left_out": [LeftOut(1, "two", "word 3 has no piece"), LeftOut(3, "x", "9 tokens")],
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
    assert states.spaces == [Space("lorentz", 0.5), Space("euclidean")]
    assert (states.kept, states.lengths, states.left_out[0].id) == ([0, 2, 5], LENGTHS, "two")
    for i, value in enumerate(values):
        assert torch.equal(states.sentence(i), value.transpose(0, 1))


def test_file_is_one_that_safetensors_reads(tmp_path, values):
    path = write(tmp_path / "s.safetensors", values)
    assert torch.equal(
        torch.from_numpy(safetensors.numpy.load_file(path)["states"]), torch.cat(values)
    )


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


def test_file_is_memory_mapped(tmp_path, values):
    states = States.open(write(tmp_path / "s.safetensors", values))
    assert isinstance(states._values.base, mmap.mmap)


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


@pytest.mark.parametrize("damage", ["cut", "text", "foreign", "empty"])
def test_damaged_file_is_named(tmp_path, values, damage):
    path = write(tmp_path / "s.safetensors", values)
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-8])
    elif damage == "text":
        path.write_text("hello, this is no file of states")
    elif damage == "empty":
        path.write_bytes(b"")
    else:
        safetensors.numpy.save_file({"states": torch.zeros(2, 3, 4).numpy()}, path)
    with pytest.raises(UserError, match=r"s\.safetensors is damaged .* extract"):
        States.open(path)


def test_missing_file_is_named(tmp_path):
    with pytest.raises(UserError, match="extract writes one"):
        States.open(tmp_path / "none")
