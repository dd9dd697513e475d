"""Errors of Hugging Face's libraries, as they are told."""

import pytest

from hyptrans.support.errors import UserError
from probing.states.failures import reason, told


class PanicException(BaseException):
    pass


@pytest.mark.parametrize("kind", [Exception, ZeroDivisionError, KeyError, PanicException])
def test_what_a_library_raises_is_told(kind):
    with pytest.raises(UserError, match=r"^x: .*damaged"), told(lambda error: f"x: {error}"):
        raise kind("damaged")


@pytest.mark.parametrize(
    "error",
    [KeyboardInterrupt(), MemoryError(), RuntimeError("CUDA out of memory"), UserError("as it is")],
)
def test_stops_full_memory_and_told_errors_stay(error):
    with pytest.raises(type(error)) as caught, told(lambda _: "damaged"):
        raise error
    assert caught.value is error


def test_a_reason_is_one_line_that_says_something():
    assert reason(ValueError("  no\n  layers. ")) == "no layers"
    assert reason(KeyError("nope")) == "KeyError: 'nope'"
    assert reason(OSError()) == "OSError"
    assert len(reason(ValueError("word " * 1_000))) <= 240
