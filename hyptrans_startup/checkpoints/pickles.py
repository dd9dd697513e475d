"""The pickle of a checkpoint, read through before torch acts on it: no call is made here.

torch's safe loader runs no code of a file, but it believes its sizes, hashes keys that are made to
take hours, and calls what makes a trillion bytes. The instructions are followed with stand-ins for
what they would make.
"""

import pickletools
import re
from collections.abc import Callable
from pickle import UnpicklingError
from typing import Any, BinaryIO, NamedTuple

MOST_INSTRUCTIONS = 400_000
"""Of one pickle; a checkpoint takes about 25 for a tensor, and half of that where it has two."""
LARGEST_INTEGER = 1 << 64
"""Beyond it lie as many integers of one hash as one likes, which make a dictionary slow."""

ALLOWED = re.compile(
    r"argparse Namespace|collections OrderedDict|_codecs encode"
    r"|torch Size|torch device"
    r"|torch (u?int|float|bfloat|complex|bool)\w*|torch \w+Storage|torch.storage \w+Storage"
    r"|torch.serialization _get_layout"
    r"|torch._utils (_rebuild_tensor(_v2)?|_rebuild_parameter)|torch.nn.parameter Parameter"
    r"|numpy (dtype|ndarray)"
    r"|numpy\.(core|_core)\.multiarray (scalar|_reconstruct)"
)
"""All that checkpoints of fairseq name, as ``module name``; torch's own list is longer."""

WIDTHS = {"ComplexDouble": 16, "ComplexFloat": 8, "Double": 8, "Long": 8, "Float": 4, "Int": 4}
WIDTHS |= {"Half": 2, "BFloat16": 2, "Short": 2, "Char": 1, "Byte": 1, "Bool": 1, "Untyped": 1}
"""Bytes of an element, by the name of torch's storage."""

_DTYPE = re.compile(r"[?bhilqBHILQefdg]\d{0,2}|[iufbc]\d{1,2}")
"""Of plain numbers, as numpy names them."""
_PLAIN_DTYPE = (None, None, None, -1, -1, 0)
"""What numpy keeps of such a dtype behind its version and order; it believes other states."""

# arguments taken from the stack, for instructions that put an object there or leave one
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_PUSH = {"BININT", "BININT1", "BININT2", "BINFLOAT", "BINUNICODE", "SHORT_BINSTRING", "LONG1"}
_EMPTY = {"EMPTY_LIST", "EMPTY_DICT", "EMPTY_SET"}
_POP = {"APPEND": 1, "SETITEM": 2}
_POP_TO_MARK = {"APPENDS", "SETITEMS"}
_TUPLES = {"EMPTY_TUPLE": 0, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


class Global(NamedTuple):
    """A name that the pickle asks for, ``module name``."""

    name: str


class Stored(NamedTuple):
    """A storage that the pickle refers to, by its number of elements."""

    elements: int


class Row(NamedTuple):
    """A tuple."""

    parts: tuple[Any, ...]


class Made(NamedTuple):
    """What a call or an instruction makes, by the name of its kind."""

    kind: str


def check_pickle(file: BinaryIO, holds: Callable[[str, int], bool]) -> None:
    """Follow a pickle to its end.

    Args:
        file: stands at the beginning of the pickle, and afterwards behind it.
        holds: whether the file has so many bytes for the storage of that name.

    Raises:
        UnpicklingError: with ``GLOBAL module.name`` for a name that no checkpoint needs, else with
            what is wrong.
    """
    stack: list[Any] = []
    marks: list[int] = []
    memo: dict[int, Any] = {}
    argument: Any
    for count, (code, argument, _) in enumerate(pickletools.genops(file)):
        if count > MOST_INSTRUCTIONS:
            raise UnpicklingError("more instructions than a checkpoint has")
        name = code.name
        if name in _PUSH:
            stack.append(argument)
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in _EMPTY:
            stack.append(Made(name))
        elif name == "BUILD":
            state = stack.pop()
            check_state(stack[-1], state)
        elif name in ("BINPUT", "LONG_BINPUT"):
            memo[argument] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(memo[argument])
        elif name == "MARK":
            marks.append(len(stack))
        elif name == "TUPLE" or name in _TUPLES:
            start = marks.pop() if name == "TUPLE" else len(stack) - _TUPLES[name]
            stack[start:] = [Row(tuple(stack[start:]))]
        elif name in _POP_TO_MARK or name in _POP:
            start = marks.pop() if name in _POP_TO_MARK else len(stack) - _POP[name]
            if name.startswith("SETITEM"):
                check_keys(stack[start::2])
            del stack[start:]
        elif name == "GLOBAL":
            stack.append(known(argument))
        elif name == "BINPERSID":
            stack[-1] = stored(stack[-1], holds)
        elif name in ("REDUCE", "NEWOBJ"):
            arguments = stack.pop()
            stack[-1] = called(stack[-1], arguments)
        elif name not in ("PROTO", "STOP"):
            raise UnpicklingError(f"instruction {name}, which torch does not write")
        if not stack and name not in ("PROTO", "MARK", "STOP"):
            raise UnpicklingError("its instructions do not add up")


def check_keys(keys: list[Any]) -> None:
    """Raise for keys whose hashes are a function of what the file says, tuples before all."""
    for key in keys:
        small = isinstance(key, int) and abs(key) < LARGEST_INTEGER
        if not (small or key is None or isinstance(key, str | bytes | float)):
            raise UnpicklingError("a dictionary has keys that no checkpoint has")


def known(name: str) -> Global:
    """Return the stand-in of a name, or raise for one that is not of a checkpoint."""
    if not ALLOWED.fullmatch(name):
        raise UnpicklingError(f"GLOBAL {name.replace(' ', '.')}")
    return Global(name)


def stored(key: Any, holds: Callable[[str, int], bool]) -> Stored:
    """Return the stand-in of a storage, or raise where it claims what is not in the file."""
    if not isinstance(key, Row) or len(key.parts) < 5:
        raise UnpicklingError("a reference to something that is no storage")
    _, kind, record, _, elements = key.parts[:5]
    if not isinstance(kind, Global) or not isinstance(elements, int) or elements < 0:
        raise UnpicklingError("a reference to something that is no storage")
    if not holds(str(record), elements * width(kind.name)):
        raise UnpicklingError("a tensor is larger than what the file has for it")
    return Stored(elements)


def width(kind: str) -> int:
    """Return the bytes of an element of a type of storage."""
    name = kind.rpartition(" ")[2].removesuffix("Storage")
    if name not in WIDTHS:
        raise UnpicklingError(f"GLOBAL {kind.replace(' ', '.')}")
    return WIDTHS[name]


def called(function: Any, arguments: Any) -> object:
    """Return the stand-in of what a call would make, or raise where it would take memory."""
    if not isinstance(function, Global) or not isinstance(arguments, Row):
        raise UnpicklingError("a call of something that is no function")
    kind, parts = function.name.rpartition(" ")[2], arguments.parts
    if kind.startswith("_rebuild_tensor"):
        check_extent(parts)
        return Made("tensor")
    if kind in ("_rebuild_parameter", "Parameter") and parts[:1] != (Made("tensor"),):
        raise UnpicklingError("a parameter of no tensor")
    if kind == "dtype":
        # numpy writes a name and two flags
        if not (len(parts) == 3 and isinstance(parts[0], str) and _DTYPE.fullmatch(parts[0])):
            raise UnpicklingError("a dtype of other things than numbers")
        return Made("dtype")
    # numpy writes an empty array of one dimension here, and what it holds afterwards
    if kind == "_reconstruct" and not (len(parts) == 3 and parts[1] == Row((0,))):
        raise UnpicklingError("an array that claims memory")
    # so are bytes and single numbers written; other codecs and numbers without bytes take memory
    if kind == "encode" and not (len(parts) == 2 and parts[1] == "latin1"):
        raise UnpicklingError("a call of encode, which torch does not write")
    if kind == "scalar" and parts != (Made("dtype"), Made("encode")):
        raise UnpicklingError("a number that claims memory")
    if kind == "ndarray" or kind.endswith("Storage") or (kind == "OrderedDict" and parts):
        raise UnpicklingError(f"a call of {kind}, which torch does not write")
    return Made(kind)


def check_state(target: Any, state: Any) -> None:
    """Raise for a state that is given to what takes none, or that numpy would believe as it is.

    torch enlarges a tensor's memory for one, and numpy takes numbers for addresses.
    """
    match target, state:
        case Made("Namespace" | "OrderedDict"), Made("EMPTY_DICT"):
            return
        case Made("dtype"), Row((int(), "<" | ">" | "|" | "=", *rest)):
            if tuple(rest) == _PLAIN_DTYPE:
                return
        case Made("_reconstruct"), Row((int(), Row(), Made("dtype"), bool(), Made("encode"))):
            return
    raise UnpicklingError("a state of something that has none, or another than its own")


def check_extent(parts: tuple[Any, ...]) -> None:
    """Raise for a tensor that reaches beyond its storage, which torch would enlarge."""
    match parts[:4]:
        case (Stored(elements), int(offset), Row(sizes), Row(strides)):
            numbers = (offset, *sizes, *strides)
            if len(sizes) == len(strides) and all(
                isinstance(number, int) and number >= 0 for number in numbers
            ):
                steps = sum((a - 1) * b for a, b in zip(sizes, strides, strict=True))
                if 0 in sizes or offset + steps < elements:
                    return
    raise UnpicklingError("a tensor is larger than what the file has for it")
