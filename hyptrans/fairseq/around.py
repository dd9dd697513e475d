"""Functions around those of fairseq, which has no place for a plug-in there."""

import functools
from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]


def around(owner: Any, name: str) -> Callable[[Function], Function]:
    """Decorator: call a function in place of ``owner.name``, with that one as the first argument.

    Args:
        owner: a class or a module.
        name: of its function, method or class method.
    """

    def put(function: Function) -> Function:
        stock = vars(owner)[name]
        of_class = isinstance(stock, classmethod)
        call = stock.__func__ if of_class else stock

        @functools.wraps(call)
        def instead(*args: Any, **kwargs: Any) -> Any:
            return function(call, *args, **kwargs)

        setattr(owner, name, classmethod(instead) if of_class else instead)
        return function

    return put
