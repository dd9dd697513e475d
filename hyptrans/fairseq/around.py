"""Wrap functions of fairseq where it has no hook for plug-ins."""

import functools
from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]


def around(owner: Any, name: str) -> Callable[[Function], Function]:
    """Decorate a function to replace ``owner.name``, which becomes its first argument.

    The owner is a module with a function, or a class with a method or class method, of this name.
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
