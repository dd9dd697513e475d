"""The machinery of the start-up hook; imported only when a module of its table is imported.

A step is a function that is called with what it stands around, and the arguments: ``step(call,
*arguments)``. `before`, `after` and `told` make a step of a function that needs less than that.
"""

import functools
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from importlib.machinery import ModuleSpec, SourceFileLoader, SourcelessFileLoader
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType
from typing import Any

from hyptrans_startup import STEPS
from hyptrans_startup.errors import UserError

VERSIONS = {"fairseq": "0.12.2", "hydra": "1.0.7"}
DISTRIBUTIONS = {"fairseq": "fairseq", "hydra": "hydra-core"}

Call = Callable[..., Any]


def before(check: Call) -> Call:
    """Make a step of a function that looks at the arguments, and raises what is wrong with them."""

    @functools.wraps(check)
    def step(call: Call, *args: Any, **kwargs: Any) -> Any:
        check(*args, **kwargs)
        return call(*args, **kwargs)

    return step


def after(look: Call) -> Call:
    """Make a step of a function that looks at the result and the arguments, or changes them."""

    @functools.wraps(look)
    def step(call: Call, *args: Any, **kwargs: Any) -> Any:
        result = call(*args, **kwargs)
        look(result, *args, **kwargs)
        return result

    return step


def told(*kinds: type[Exception]) -> Callable[[Call], Call]:
    """Make a step of a function that tells an error of some kinds to the user.

    The function gets the error and the arguments, and returns the sentence of a `UserError`, or
    None, which lets the error pass.
    """

    def made(tell: Call) -> Call:
        @functools.wraps(tell)
        def step(call: Call, *args: Any, **kwargs: Any) -> Any:
            try:
                return call(*args, **kwargs)
            except kinds as error:
                sentence = tell(error, *args, **kwargs)
                if sentence is None:
                    raise
                raise UserError(sentence) from error

        return step

    return made


class Overlay(ModuleType):
    """A module, or a class, with a few names replaced, as one importing module shall see it.

    TorchScript looks names up in modules and in nothing that is only like one.
    """

    def __init__(self, module: Any, **replaced: Any) -> None:
        super().__init__(module.__name__)
        vars(self).update(replaced)
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


def found_version(package: str) -> str | None:
    """Version of a package, asked of the imported module first: it may not be the installed one."""
    known = getattr(sys.modules.get(package), "__version__", None)
    if known is not None:
        return known
    try:
        return version(DISTRIBUTIONS[package])
    except PackageNotFoundError:
        return None


def find_wrapped(
    finder: object, name: str, path: Sequence[str] | None, target: ModuleType | None
) -> ModuleSpec | None:
    """Return the spec that the finders behind `finder` give for `name`, with its steps around it.

    None, which sends the import on its usual way, for another fairseq or hydra.
    """
    if any(found_version(package) != wanted for package, wanted in VERSIONS.items()):
        return None
    for other in sys.meta_path:
        find_spec = getattr(other, "find_spec", None)
        if other is finder or find_spec is None:
            continue
        spec = find_spec(name, path, target)
        # such a loader belongs to one module, so its method can be replaced; pytest's, which takes
        # every package that comes with a plug-in for it, and a zip file's serve many
        if spec is not None and isinstance(spec.loader, SourceFileLoader | SourcelessFileLoader):
            vars(spec.loader)["exec_module"] = functools.partial(execute, spec.loader.exec_module)
            return spec
    return None


def execute(exec_module: Callable[[ModuleType], None], module: ModuleType) -> None:
    """Execute a module inside its steps, and wrap its functions in theirs."""
    with ExitStack() as stack:
        for step in steps_of(module.__name__):
            stack.enter_context(step(module))
        exec_module(module)
    for key in STEPS:
        name, _, target = key.partition(":")
        if target and name == module.__name__:
            wrap(module, target, steps_of(key))


def steps_of(key: str) -> list[Call]:
    """Return the steps of a module or a function, without those that the user leaves out."""
    skipped = os.environ.get("HYPTRANS_STARTUP_SKIP", "").split(",")
    places = (step.split(":") for step in STEPS.get(key, ()))
    return [
        getattr(importlib.import_module(f"hyptrans_startup.{home}"), name)
        for home, name in places
        if name not in skipped
    ]


def wrap(module: ModuleType, target: str, steps: Sequence[Call]) -> None:
    """Replace a function, as one module sees it, by one that runs it inside its steps.

    Args:
        module: the module, executed.
        target: name of the function there, or ``owner.name``. An owner that the module only imports
            stays as it is for others.
        steps: the outermost first.
    """
    if not steps:
        return
    home, _, name = target.rpartition(".")
    owner: Any = module
    if home:
        owner = vars(module)[home]
        if getattr(owner, "__module__", None) != module.__name__:
            owner = vars(module)[home] = Overlay(owner)
    stock = vars(owner).get(name) or getattr(owner, name)
    of_class = isinstance(stock, classmethod)
    call = stock.__func__ if of_class else stock
    for step in reversed(steps):
        call = functools.partial(step, call)

    @functools.wraps(stock)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return call(*args, **kwargs)

    setattr(owner, name, classmethod(wrapper) if of_class else wrapper)
