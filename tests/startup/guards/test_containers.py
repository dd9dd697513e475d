"""The zip and the pickle of a checkpoint are looked at before torch acts on them."""

import io
import struct
import zipfile
from pickle import UnpicklingError

import numpy as np
import pytest
import torch

from hyptrans_startup.guards.containers import check_container
from tests.hostile.pickles import Calls, as_pickle, tuple_in_tuple, zipped


def check(path):
    with open(path, "rb") as file:
        check_container(file)
        assert file.tell() == 0


@pytest.mark.parametrize("zipped", [True, False])
def test_what_torch_writes_of_all_kinds_passes(zipped, tmp_path):
    whole = torch.arange(24.0).view(4, 6)
    state = {
        "views": [whole[1:, ::2], whole.t(), whole[0, 0], torch.empty(0, 3)],
        "types": [torch.ones(2, dtype=kind) for kind in (torch.half, torch.bool, torch.int64)],
        "parameter": torch.nn.Parameter(torch.ones(2)),
        "numpy": [np.float64(0.5), np.arange(3), np.float32(1)],
        "plain": {1: (None, True, 2.5, b"x", "text", 2**40, -1)},
    }
    path = tmp_path / "c.pt"
    torch.save(state, path, _use_new_zipfile_serialization=zipped)
    check(path)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (as_pickle(Calls("builtins.bytearray", 10**12)), "GLOBAL builtins.bytearray"),
        (as_pickle(Calls("os.system", "id")), "GLOBAL os.system"),
        (as_pickle({(1, 2): 3}), "keys that no checkpoint has"),
        (as_pickle({2**200: 3}), "keys that no checkpoint has"),
        (b"\x80\x02}" + tuple_in_tuple(40) + b"K\x01s.", "keys that no checkpoint has"),
        (b"\x80\x02](" + b"}" * 500_000 + b"e.", "more instructions"),
        (b"\x80\x04\x95" + bytes(8) + b".", "FRAME"),
        (b"\x80\x02h\x01.", "KeyError"),
        (b"\x80\x02X" + struct.pack("<I", 2**31) + b"a.", "ValueError"),
        (as_pickle(Calls("numpy.ndarray", (10**12,))), "ndarray"),
    ],
)
def test_pickle_that_torch_does_not_write_is_refused(data, reason, tmp_path):
    with pytest.raises(UnpicklingError, match=reason):
        check(zipped(tmp_path / "c.pt", data))


def test_tensor_beyond_its_storage_is_refused(tmp_path):
    torch.save({"a": torch.ones(4)}, tmp_path / "c.pt", _use_new_zipfile_serialization=False)
    path = tmp_path / "c.pt"
    # the shape; torch would make the storage larger
    path.write_bytes(path.read_bytes().replace(b"K\x04\x85", b"J\xff\xff\xff\x7f\x85"))
    with pytest.raises(UnpicklingError, match="larger than what the file has"):
        check(path)


def test_compressed_zip_is_refused(tmp_path):
    path = zipped(tmp_path / "c.pt", b"\x80\x02}.", zipfile.ZIP_DEFLATED)
    with pytest.raises(UnpicklingError, match="compressed"):
        check(path)


def test_two_files_of_one_name_are_refused(tmp_path):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a/data.pkl", b"\x80\x02}.")
        archive.writestr("a/DATA.pkl", b"\x80\x02}.")
    with pytest.raises(UnpicklingError, match="one name"):
        check_container(io.BytesIO(file.getvalue()))
