"""A safe ``eval`` for fairseq's options, which a checkpoint may supply: it takes literals only."""

import ast
import operator
import sys
from typing import Any

from hyptrans.support.errors import UserError, one_line

_ARITHMETIC = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def install() -> None:
    """Replace ``eval`` by `literal` in all imported modules of fairseq."""
    for name, module in list(sys.modules.items()):
        if name.startswith("fairseq.") and module is not None:
            # a function looks up a name in its module before the builtins
            vars(module).setdefault("eval", literal)


def literal(text: Any) -> Any:
    """Evaluate an option's value as ``eval`` does, if it consists of literals.

    It takes what `ast.literal_eval` takes, and arithmetic on it: fairseq writes layers as
    ``[(512, 3)] * 9 + [(1024, 3)] * 4``.

    Raises:
        TypeError: the value is not a string; fairseq relies on this error.
        UserError: the value contains more than literals.
    """
    if not isinstance(text, str):
        raise TypeError("eval() takes a string")
    try:
        return _value(ast.parse(text.strip(), mode="eval").body)
    except (ValueError, TypeError, SyntaxError, ArithmeticError, RecursionError) as error:
        raise UserError(
            f"the option {one_line(text, 60)!r} is refused: fairseq would evaluate it, and "
            "hyptrans allows only numbers, strings and lists of them; write it out"
        ) from error


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        return _ARITHMETIC[type(node.op)](_value(node.left), _value(node.right))
    return ast.literal_eval(node)
