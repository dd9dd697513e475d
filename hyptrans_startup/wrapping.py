"""The machinery of the start-up hook; imported only when a module with a fix is imported."""

import functools
import importlib
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from importlib.machinery import ModuleSpec, SourceFileLoader, SourcelessFileLoader
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType
from typing import Any, Protocol

VERSIONS = {"fairseq": "0.12.2", "hydra": "1.0.7"}
DISTRIBUTIONS = {"fairseq": "fairseq", "hydra": "hydra-core"}


class HasFixes(Protocol):
    """What this module needs to know of the finder."""

    fixes: dict[str, list[tuple[str, str]]]


class Overlay(ModuleType):
    """A module with a few names replaced, as one importing module shall see it.

    TorchScript looks names up in modules and in nothing that is only like one.
    """

    def __init__(self, module: ModuleType, **replaced: Any) -> None:
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
    finder: HasFixes, name: str, path: Sequence[str] | None, target: ModuleType | None
) -> ModuleSpec | None:
    """Return the spec that the finders behind `finder` give for `name`, with its fixes around it.

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
            run = functools.partial(execute, spec.loader.exec_module, finder.fixes[name])
            vars(spec.loader)["exec_module"] = run
            return spec
    return None


def execute(
    exec_module: Callable[[ModuleType], None], fixes: list[tuple[str, str]], module: ModuleType
) -> None:
    """Execute a module inside its fixes."""
    with ExitStack() as stack:
        for home, fix in fixes:
            wrap = getattr(importlib.import_module(f"hyptrans_startup.{home}"), fix)
            stack.enter_context(wrap(module))
        exec_module(module)
