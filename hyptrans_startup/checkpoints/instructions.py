"""The pickle of a checkpoint, read by a table of what checkpoints are made of: nothing is called.

Names in the pickle choose among `CONSTRUCTORS`, which make plain values; every other name, and
every instruction that torch does not write, is refused.
"""

import math
import re
import struct
from argparse import Namespace
from collections.abc import Callable
from pickle import UnpicklingError
from typing import Any, BinaryIO, NamedTuple

MOST_INSTRUCTIONS = 400_000
"""Of one pickle; a checkpoint takes about 25 for a tensor, and half of that where it has two."""
MOST_PARTS = 400_000
"""Of what a pickle holds, counted wherever they stand: a list may stand in many places."""
DEEPEST = 100
MOST_DIMENSIONS = 64
"""torch's own."""
LONGEST_NAME = 100
LARGEST_INTEGER = 1 << 64
"""Beyond it lie as many integers of one hash as one likes, which make a dictionary slow."""
_LONGEST_INTEGER = 16
"""Bytes of the largest integer that a checkpoint has: random numbers' states have 16."""
_NUMPY_NUMBER = re.compile(r"[?bhilqBHILQefd]|[iufb]\d{1,2}")
_PLAIN_DTYPE = (None, None, None, -1, -1, 0)
"""What numpy keeps of a dtype of plain numbers behind its version and order."""

STORAGES = {"Double": "float64", "Float": "float32", "Half": "float16", "BFloat16": "bfloat16"}
STORAGES |= {"Long": "int64", "Int": "int32", "Short": "int16", "Char": "int8", "Byte": "uint8"}
STORAGES |= {"Bool": "bool", "ComplexFloat": "complex64", "ComplexDouble": "complex128"}
"""torch's types of numbers, by the names of its storages."""
WIDTHS = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "int64": 8, "int32": 4}
WIDTHS |= {"int16": 2, "int8": 1, "uint8": 1, "bool": 1, "complex64": 8, "complex128": 16}
"""Bytes of such a number."""


class Global(NamedTuple):
    """A name that the pickle asks for, ``module name``."""

    name: str


class Stored(NamedTuple):
    """A storage that the pickle refers to: where its bytes are, its type, and how many numbers."""

    key: str
    dtype: str
    elements: int


class Tensor(NamedTuple):
    """A tensor that lies within its storage."""

    stored: Stored
    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]


class Numbers:
    """A dtype of numpy, or an array of one: what makes them says the rest of them later."""

    def __init__(self, code: str) -> None:
        self.code = code
        self.sizes: tuple[int, ...] | None = None
        self.content = b""


def load(file: BinaryIO, stored: dict[str, Stored] | None = None) -> Any:
    """Read one pickle, with `Tensor` in place of its tensors.

    Args:
        file: stands at the beginning of the pickle, and afterwards behind it.
        stored: gets the storages that the pickle refers to, by their keys.

    Raises:
        UnpicklingError: with ``GLOBAL module.name`` for a name that no checkpoint needs, else with
            what is wrong.
    """
    try:
        return _Machine(file, {} if stored is None else stored).run()
    except (LookupError, TypeError, ValueError, AttributeError, struct.error) as error:
        raise UnpicklingError(f"its instructions do not add up ({type(error).__name__})") from error


def canonical(value: Any, tensor: Callable[[Tensor], Any]) -> Any:
    """Return what a pickle holds as new plain values, of which none is any other's part.

    Args:
        value: what :func:`load` returned.
        tensor: makes a tensor, the same one for the same description.

    Raises:
        UnpicklingError: parts without end, or what is no value.
    """
    _count(value, 0, {})

    def made(part: Any) -> Any:
        if part is None or isinstance(part, bool | int | float | str):
            return part
        if isinstance(part, Tensor):
            return tensor(part)
        if isinstance(part, dict):
            return {key: made(each) for key, each in part.items()}
        if isinstance(part, Namespace):
            return Namespace(**{key: made(each) for key, each in vars(part).items()})
        if type(part) in (list, tuple):
            return type(part)(map(made, part))
        if isinstance(part, Numbers) and part.sizes is not None:
            return _array(part)
        raise UnpicklingError(f"a {type(part).__name__} where values are")

    return made(value)


def _count(part: Any, depth: int, counted: dict[int, tuple[int, int]]) -> tuple[int, int]:
    """Number and depth of the parts in a part, each counted wherever it stands.

    Args:
        part: looked at once, and found in `counted` from then on.
        depth: how deep the part lies.
        counted: numbers and depths by the identity of parts.

    Raises:
        UnpicklingError: too many, or too deep.
    """
    if isinstance(part, Namespace):
        part = vars(part)
    if type(part) not in (dict, list, tuple):
        return 1, 0
    if id(part) not in counted and depth <= DEEPEST:
        inner = part.values() if isinstance(part, dict) else part
        found = [_count(each, depth + 1, counted) for each in inner]
        below = max((depth for _, depth in found), default=0)
        counted[id(part)] = 1 + sum(number for number, _ in found), 1 + below
    number, below = counted.get(id(part), (0, DEEPEST))
    if number > MOST_PARTS or depth + below > DEEPEST:
        raise UnpicklingError("it has parts in parts without end")
    return number, below


def _array(numbers: Numbers) -> Any:
    import numpy as np
    import torch

    array = np.frombuffer(numbers.content, numbers.code).reshape(numbers.sizes)
    return torch.from_numpy(array.astype(array.dtype.newbyteorder("=")))


class _Machine:
    """Follows the instructions of a pickle."""

    def __init__(self, file: BinaryIO, stored: dict[str, Stored]) -> None:
        self.file = file
        self.stored = stored
        self.stack: list[Any] = []
        self.below: list[list[Any]] = []
        """What lies on the stack under each mark."""
        self.memo: dict[int, Any] = {}

    def run(self) -> Any:
        for _ in range(MOST_INSTRUCTIONS):
            code = self.bytes(1)
            if code == b".":
                (value,) = self.stack
                return value
            if code not in _INSTRUCTIONS:
                name = _names().get(code, repr(code))
                raise UnpicklingError(f"instruction {name}, which torch does not write")
            _INSTRUCTIONS[code](self)
        raise UnpicklingError("more instructions than a checkpoint has")

    def bytes(self, count: int) -> bytes:
        found = self.file.read(count)
        if len(found) < count:
            raise UnpicklingError("it is cut short")
        return found

    def number(self, layout: str) -> Any:
        return struct.unpack(layout, self.bytes(struct.calcsize(layout)))[0]

    def text(self, size: int, encoding: str = "utf-8") -> str:
        return self.bytes(size).decode(
            encoding, "surrogatepass" if encoding == "utf-8" else "strict"
        )

    def long(self) -> int:
        size = self.number("<B")
        if size > _LONGEST_INTEGER:
            raise UnpicklingError("an integer that no checkpoint has")
        return int.from_bytes(self.bytes(size), "little", signed=True)

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def top(self, count: int) -> list[Any]:
        """Take so many values from the stack."""
        if count > len(self.stack):
            raise UnpicklingError("its instructions do not add up")
        start = len(self.stack) - count
        values = self.stack[start:]
        del self.stack[start:]
        return values

    def mark(self) -> None:
        self.below.append(self.stack)
        self.stack = []

    def marked(self) -> list[Any]:
        """Take all values above the last mark."""
        values, self.stack = self.stack, self.below.pop()
        return values

    def put(self, place: int) -> None:
        self.memo[place] = self.stack[-1]

    def append(self, values: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) is not list:
            raise UnpicklingError("parts of something that is no list")
        target.extend(values)

    def set(self, values: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) is not dict:
            raise UnpicklingError("parts of something that is no dictionary")
        for key, value in zip(values[::2], values[1::2], strict=True):
            target[_key(key)] = value

    def name(self) -> None:
        module, name = (self.file.readline(LONGEST_NAME)[:-1].decode("ascii") for _ in range(2))
        if f"{module} {name}" not in CONSTRUCTORS and _storage(f"{module} {name}") is None:
            raise UnpicklingError(f"GLOBAL {module}.{name}")
        self.push(Global(f"{module} {name}"))

    def call(self) -> None:
        function, arguments = self.top(2)
        if not isinstance(function, Global) or type(arguments) is not tuple:
            raise UnpicklingError("a call of something that is no function")
        if function.name not in CONSTRUCTORS:
            raise UnpicklingError(f"a call of {function.name}, which torch does not write")
        self.push(CONSTRUCTORS[function.name](*arguments))

    def refer(self) -> None:
        """A storage: its type, the name of its bytes, where it was, and how many numbers."""
        _, kind, key, _, elements, *view = self.top(1)[0]
        dtype = _storage(kind.name) if isinstance(kind, Global) else None
        if dtype is None or not isinstance(key, str | int) or type(elements) is not int:
            raise UnpicklingError("a reference to something that is no storage")
        if elements < 0 or any(part is not None for part in view):
            raise UnpicklingError("a reference to something that is no storage")
        found = Stored(str(key), dtype, elements)
        if self.stored.setdefault(found.key, found) != found:
            raise UnpicklingError("two storages of one name")
        self.push(found)

    def build(self) -> None:
        """Fill what a constructor has made; attributes of a dictionary are not kept."""
        (state,) = self.top(1)
        match self.stack[-1], state:
            case Namespace() as options, dict():
                if not all(isinstance(key, str) for key in state):
                    raise UnpicklingError("options have names that are no text")
                vars(options).update(state)
            case dict(), dict():
                pass
            case Numbers() as made, (int(), "<" | ">" | "|" | "=" as order, *rest):
                if tuple(rest) != _PLAIN_DTYPE:
                    raise UnpicklingError("a dtype of other things than numbers")
                made.code = order + made.code
            case Numbers() as made, (int(), tuple(sizes), Numbers() as kind, False, bytes(content)):
                if not all(type(size) is int and size >= 0 for size in sizes):
                    raise UnpicklingError("an array that claims memory")
                made.code, made.sizes, made.content = kind.code, sizes, content
            case _:
                raise UnpicklingError("a state of something that has none, or another than its own")


def _names() -> dict[bytes, str]:
    """Of all instructions that Python has."""
    import pickletools  # slow to import, and for an error alone

    return {op.code.encode("latin1"): op.name for op in pickletools.opcodes}


def _key(key: Any) -> Any:
    """A key whose hash is no function of what the file says."""
    small = isinstance(key, int) and abs(key) < LARGEST_INTEGER
    if not (small or key is None or isinstance(key, str | float)):
        raise UnpicklingError("a dictionary has keys that no checkpoint has")
    return key


def _storage(name: str) -> str | None:
    """The type of the numbers in a storage of torch's, None if the name is no storage's."""
    module, _, kind = name.partition(" ")
    if module not in ("torch", "torch.storage", "torch.cuda") or not kind.endswith("Storage"):
        return None
    return STORAGES.get(kind.removesuffix("Storage"))


def _tensor(stored: Any, offset: Any, sizes: Any, strides: Any, *_: Any) -> Tensor:
    if isinstance(stored, Stored) and type(sizes) is tuple and type(strides) is tuple:
        numbers = (offset, *sizes, *strides)
        plain = all(type(number) is int and number >= 0 for number in numbers)
        if plain and len(sizes) == len(strides) <= MOST_DIMENSIONS:
            steps = sum((a - 1) * b for a, b in zip(sizes, strides, strict=True))
            # no number stands for many
            inside = offset + steps < stored.elements and math.prod(sizes) <= stored.elements
            if 0 in sizes or inside:
                return Tensor(stored, offset if 0 not in sizes else 0, sizes, strides)
    raise UnpicklingError("a tensor is larger than what the file has for it")


def _parameter(data: Any, *_: Any) -> Tensor:
    if not isinstance(data, Tensor):
        raise UnpicklingError("a parameter of no tensor")
    return data


def _dtype(code: Any, *_: Any) -> Numbers:
    if not (isinstance(code, str) and _NUMPY_NUMBER.fullmatch(code)):
        raise UnpicklingError("a dtype of other things than numbers")
    return Numbers(code)


def _empty_array(_: Any, sizes: Any, __: Any) -> Numbers:
    if sizes != (0,):
        raise UnpicklingError("an array that claims memory")
    return Numbers("")


def _number(kind: Any, content: Any) -> bool | int | float:
    import numpy as np

    if not isinstance(kind, Numbers) or not isinstance(content, bytes):
        raise UnpicklingError("a number that claims memory")
    (found,) = np.frombuffer(content, kind.code)
    value = found.item()
    if not isinstance(value, bool | int | float):
        raise UnpicklingError("a number of an unknown kind")
    return value


def _encoded(text: Any, encoding: Any) -> bytes:
    if not isinstance(text, str) or encoding != "latin1":
        raise UnpicklingError("a call of encode, which torch does not write")
    return text.encode("latin1")


def _class(*_: Any) -> Any:
    raise UnpicklingError("a call of a class, which torch does not write")


CONSTRUCTORS: dict[str, Callable[..., Any]] = {
    "collections OrderedDict": lambda: {},
    "argparse Namespace": lambda: Namespace(),
    "torch._utils _rebuild_tensor": _tensor,
    "torch._utils _rebuild_tensor_v2": _tensor,
    "torch._utils _rebuild_parameter": _parameter,
    "torch.nn.parameter Parameter": _parameter,
    "torch Size": lambda sizes: tuple(sizes),
    "torch device": lambda *parts: ":".join(map(str, parts)),
    "_codecs encode": _encoded,
    "numpy dtype": _dtype,
    "numpy ndarray": _class,
    **{f"numpy.{core}.multiarray scalar": _number for core in ("core", "_core")},
    **{f"numpy.{core}.multiarray _reconstruct": _empty_array for core in ("core", "_core")},
}
"""All names that checkpoints of fairseq have, and what is made in place of theirs."""

_INSTRUCTIONS: dict[bytes, Callable[[_Machine], object]] = {
    b"\x80": lambda m: m.bytes(1),  # the version of the protocol
    b"(": _Machine.mark,
    b"N": lambda m: m.push(None),
    b"\x88": lambda m: m.push(True),
    b"\x89": lambda m: m.push(False),
    b"K": lambda m: m.push(m.number("<B")),
    b"M": lambda m: m.push(m.number("<H")),
    b"J": lambda m: m.push(m.number("<i")),
    b"\x8a": lambda m: m.push(m.long()),
    b"G": lambda m: m.push(m.number(">d")),
    b"X": lambda m: m.push(m.text(m.number("<I"))),
    b"U": lambda m: m.push(m.text(m.number("<B"), "latin1")),
    b"}": lambda m: m.push({}),
    b"]": lambda m: m.push([]),
    b")": lambda m: m.push(()),
    b"\x85": lambda m: m.push(tuple(m.top(1))),
    b"\x86": lambda m: m.push(tuple(m.top(2))),
    b"\x87": lambda m: m.push(tuple(m.top(3))),
    b"t": lambda m: m.push(tuple(m.marked())),
    b"a": lambda m: m.append(m.top(1)),
    b"e": lambda m: m.append(m.marked()),
    b"s": lambda m: m.set(m.top(2)),
    b"u": lambda m: m.set(m.marked()),
    b"q": lambda m: m.put(m.number("<B")),
    b"r": lambda m: m.put(m.number("<I")),
    b"h": lambda m: m.push(m.memo[m.number("<B")]),
    b"j": lambda m: m.push(m.memo[m.number("<I")]),
    b"c": _Machine.name,
    b"R": _Machine.call,
    b"\x81": _Machine.call,
    b"Q": _Machine.refer,
    b"b": _Machine.build,
}
"""What torch writes by Python's protocol 2, by the byte of each."""
