"""Containers and pickles that somebody made by hand: refused, or read as what they say."""

import collections
import io
import struct
import zipfile
from pickle import UnpicklingError

import numpy as np
import pytest
import torch

from hyptrans_startup.checkpoints.reader import read
from tests.hostile.pickles import Calls, as_pickle, tuple_in_tuple, zipped


class Stated:
    """Pickles as a call whose result is given a state."""

    def __init__(self, function, arguments, state):
        self.made = function, arguments, state

    def __reduce__(self):
        return self.made


def plain_dtype(*state):
    return Stated(np.dtype, ("f8", False, True), state)


def reconstructed(dtype):
    """An array of two numbers."""
    rebuild, arguments, _ = np.arange(2.0).__reduce__()
    return Stated(rebuild, arguments, (1, (2,), dtype, False, bytes(16)))


def check(path):
    with open(path, "rb") as file:
        read(file)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (as_pickle(Calls("builtins.bytearray", 10**12)), "GLOBAL builtins.bytearray"),
        (as_pickle(Calls("os.system", "id")), "GLOBAL os.system"),
        (as_pickle({(1, 2): 3}), "keys that no checkpoint has"),
        (as_pickle({2**200: 3}), "an integer that no checkpoint has"),
        (as_pickle({2**66: 3}), "keys that no checkpoint has"),
        (b"\x80\x02}" + tuple_in_tuple(40) + b"K\x01s.", "keys that no checkpoint has"),
        (b"\x80\x02](" + b"}" * 500_000 + b"e.", "more instructions"),
        (b"\x80\x04\x95" + bytes(8) + b".", "FRAME"),
        (b"\x80\x02h\x01.", "do not add up"),
        (b"\x80\x02X" + struct.pack("<I", 2**31) + b"a.", "cut short"),
        (as_pickle(Calls("numpy.ndarray", (10**12,))), "a call of a class"),
        (as_pickle(Calls("_codecs.encode", "a", "punycode")), "a call of encode"),
        (as_pickle(Calls("_codecs.encode", Calls("_codecs.encode", "a", "hex"), "hex")), "encode"),
        (
            as_pickle(Calls("torch.storage.UntypedStorage", 2**31 - 1)),
            "GLOBAL torch.storage.UntypedStorage",
        ),
        (
            as_pickle(Calls("numpy.core.multiarray.scalar", Calls("numpy.dtype", "V2000000000"))),
            "a dtype of other things than numbers",
        ),
        (
            as_pickle(Calls("numpy.core.multiarray.scalar", Calls("numpy.dtype", "f8", 0, 1))),
            "do not add up",
        ),
        (as_pickle(Calls("numpy.dtype", [("a", "f8")], False, True)), "a dtype of other things"),
        (as_pickle(Calls("torch.nn.parameter.Parameter", None, False)), "a parameter of no tensor"),
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


def written(**files):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return file.getvalue()


EVIL = as_pickle(Calls("os.system", "id"))


@pytest.mark.parametrize(
    "files",
    [
        {"a/DATA.PKL": EVIL, "a/version": b"3", "b/data.pkl": b"\x80\x02}."},
        {"a/version": b"3", "b/data.pkl": b"\x80\x02}."},
        {"a/version": b"3", "a/DATA.PKL": EVIL},
        {"a/version": b"3"},
    ],
)
def test_pickle_that_torch_would_find_is_the_one_that_is_looked_at(files):
    with pytest.raises(UnpicklingError, match=r"it has no pickle|one name"):
        read(io.BytesIO(written(**files)))


def test_a_list_of_files_that_only_torch_would_find_is_refused():
    harmless = b"\x80\x02}.".ljust(len(EVIL), b"\0")
    first, second = (written(**{"a/data.pkl": data}) for data in (EVIL, harmless))
    # the first without its end; the second's end has the place of the list in the first, too
    both = first[:-22] + second
    with zipfile.ZipFile(io.BytesIO(both)) as archive:
        assert archive.read("a/data.pkl") == harmless
    with pytest.raises(UnpicklingError, match="its list of files is not where it says"):
        read(io.BytesIO(both))


def test_a_larger_list_of_files_is_the_same_or_refused(tmp_path):
    path = tmp_path / "c.pt"
    torch.save({"a": torch.ones(4)}, path)
    whole = path.read_bytes()
    check(path)
    assert whole[-42:-38] == b"PK\6\7"
    for place in (-42 + 8, -98 + 40, -98 + 48):  # where it is, its bytes, where they begin
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(UnpicklingError, match=r"two lists|not where it says"):
            check(path)
    # the numbers of the end of the zip, where these are too large for it
    path.write_bytes(whole[:-10] + b"\xff" * 8 + whole[-2:])
    check(path)


@pytest.mark.parametrize(
    "hostile",
    [
        plain_dtype(3, "<", (np.dtype("i8"), (1,)), None, None, 8, 8, 0),
        plain_dtype(3, "<", None, ("a",), {"a": (np.dtype("i8"), 0)}, 8, 8, 27),
        reconstructed(np.dtype([("a", "f8")])),
        reconstructed(np.dtype("O")),
        Stated(torch.device, ("cpu",), {"a": 1}),
        Stated(torch.Size, ((1,),), {"a": 1}),
        Stated(collections.OrderedDict, (), (1, 2)),
    ],
)
def test_a_state_that_would_be_believed_is_refused(hostile, tmp_path):
    path = tmp_path / "c.pt"
    torch.save({"x": hostile}, path)
    with pytest.raises(UnpicklingError, match=r"a (state|dtype) of"):
        check(path)


def test_a_plain_dtype_with_its_own_state_passes(tmp_path):
    path = tmp_path / "c.pt"
    torch.save({"x": reconstructed(plain_dtype(3, "<", None, None, None, -1, -1, 0))}, path)
    check(path)


def test_a_tensor_is_given_no_other_extent(tmp_path):
    rebuild, arguments = torch.ones(2)._reduce_ex_internal(2)
    path = tmp_path / "c.pt"
    storage = torch.ones(2)
    torch.save({"x": Stated(rebuild, arguments, (storage, 0, (10**9,), (1,)))}, path)
    with pytest.raises(UnpicklingError, match="a state of something that has none"):
        check(path)
