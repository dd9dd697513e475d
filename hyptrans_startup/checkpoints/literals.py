"""Option strings that fairseq evaluates: literals are taken, nothing else is."""

import ast
import operator
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import ModuleType
from typing import Any

from hyptrans_startup.errors import UserError

LONGEST_TEXT = 4_000
"""Characters of an option that is evaluated, strings aside; a list of buckets or layers has
hundreds."""
LONGEST_LINE = 1 << 20
"""Characters of an utterance's line in a manifest: an hour of fifty units a second."""
MOST_ENTRIES = 10_000
"""Entries of a list that is written as a sum or a multiple, as in ``[(512, 3)] * 20``."""
OF_NUMBERS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
"""No power, which grows without bound."""
_STRING = re.compile(r"'[^'\\]*'|\"[^\"\\]*\"")


@contextmanager
def evaluated_options(module: ModuleType) -> Iterator[None]:
    """``eval()`` of an option string, which a stored configuration brings along."""
    # a function looks for names in its module before it looks among the builtins
    data = module.__name__ == "fairseq.data.codedataset"
    vars(module)["eval"] = partial(literal, longest=LONGEST_LINE) if data else literal
    yield


def literal(text: Any, longest: int = LONGEST_TEXT) -> Any:
    """Return the value of an option as ``eval`` gives it, where it is made of literals.

    That is what `ast.literal_eval` takes, and sums and multiples of it: fairseq writes layers as
    ``[(512, 3)] * 9 + [(1024, 3)] * 4``.

    Raises:
        TypeError: not a string, as from ``eval``, which callers of fairseq's rely on.
        UserError: anything but literals, or too much of them.
    """
    if not isinstance(text, str):
        raise TypeError("an option that is evaluated must be a string")
    try:
        if len(text) > longest:
            raise ValueError("it is too long")
        # the units of an utterance are one string; all else costs many times its size to read
        if len(_STRING.sub("''", text)) > LONGEST_TEXT:
            raise ValueError("it is too long without its strings")
        return fold(ast.parse(text.strip(), mode="eval").body)
    except (ValueError, TypeError, SyntaxError, ArithmeticError) as error:
        raise not_a_literal(text, longest) from error
    except (RecursionError, MemoryError) as error:
        raise not_a_literal(text, longest) from error


def fold(node: ast.expr) -> Any:
    """Return the value of an expression: a literal, or arithmetic of numbers and lists."""
    if not isinstance(node, ast.BinOp):
        return ast.literal_eval(node)
    left, right = fold(node.left), fold(node.right)
    both = (left, right)
    if all(isinstance(part, int | float) for part in both) and type(node.op) in OF_NUMBERS:
        return OF_NUMBERS[type(node.op)](left, right)
    rows = [part for part in both if isinstance(part, list | tuple)]
    if isinstance(node.op, ast.Add) and len(rows) == 2:
        return within_bounds(len(left) + len(right)) and left + right
    counts = [part for part in both if isinstance(part, int)]
    if isinstance(node.op, ast.Mult) and len(rows) == len(counts) == 1:
        return within_bounds(weight(rows[0]) * max(counts[0], 0)) and left * right
    raise ValueError("not arithmetic of literals")


def weight(value: Any) -> int:
    """Return how many numbers and strings a literal holds."""
    if isinstance(value, list | tuple | set):
        return 1 + sum(map(weight, value))
    if isinstance(value, dict):
        return 1 + sum(weight(key) + weight(part) for key, part in value.items())
    return 1


def within_bounds(entries: int) -> bool:
    """Return True, or raise where a list would get too long."""
    if entries > MOST_ENTRIES:
        raise ValueError("it has too many entries")
    return True


def not_a_literal(text: str, longest: int = LONGEST_TEXT) -> UserError:
    """Return the error for an option that is refused."""
    shown = text if len(text) <= 60 else text[:57] + "..."
    return UserError(
        f"the option {shown!r} is refused: fairseq would evaluate it, and only numbers, strings "
        f"and lists of them, at most {longest} characters, are taken; write it out"
    )
