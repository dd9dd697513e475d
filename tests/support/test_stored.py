from dataclasses import dataclass, field
from typing import Literal

import pytest

from hyptrans.support.stored import build, read_json


@dataclass
class Inner:
    kind: Literal["a", "b"]
    c: float = 1.0


@dataclass
class Outer:
    name: str
    count: int
    flag: bool
    inner: list[Inner]
    rest: list[int] = field(default_factory=list)


GOOD = {"name": "x", "count": 2, "flag": True, "inner": [{"kind": "a", "c": 2}]}


def test_what_is_declared_is_built():
    assert build(Outer, GOOD) == Outer("x", 2, True, [Inner("a", 2)])


@pytest.mark.parametrize(
    "change",
    [
        {"name": 1},
        {"count": True},
        {"count": 1.5},
        {"flag": 1},
        {"inner": {}},
        {"inner": [{"kind": "c"}]},
        {"inner": [{"kind": "a", "c": "1"}]},
        {"inner": [[]]},
        {"rest": [None]},
        {"other": 1},
    ],
    ids=str,
)
def test_anything_else_is_refused(change):
    with pytest.raises(ValueError, match=f"{next(iter(change))}|kind|c is|Inner"):
        build(Outer, {**GOOD, **change})
    with pytest.raises(ValueError, match="lacks 'flag'"):
        build(Outer, {"count": 1})


@pytest.mark.parametrize("text", ["[" * 100_000, "[1]", "nope", "1"])
def test_text_that_is_no_object_is_refused(text):
    with pytest.raises(ValueError, match=r"JSON|Expecting"):
        read_json(text)


def test_a_field_that_stands_twice_is_refused_where_it_would_decide():
    with pytest.raises(ValueError, match="two fields of one name"):
        read_json('{"a": 1, "b": 2, "a": 3}', unique=True)
    assert read_json('{"a": 1, "b": 2}', unique=True) == {"a": 1, "b": 2}
