"""What stops fairseq 0.12.2 on today's versions: one function per wall, named by its symptom.

Each is a context manager around the execution of a module; `hyptrans_startup.FIXES` says of which.
A fix changes what that one module sees and leaves Python, torch, numpy and hydra as they are.
"""

import builtins
import codecs
import dataclasses
import importlib
import importlib.util
import pkgutil
import sys
import traceback
import typing
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import Any

from hyptrans_startup import FIXES
from hyptrans_startup.wrapping import Overlay


@contextmanager
def mutable_default(module: ModuleType) -> Iterator[None]:
    """Python >= 3.11: ``ValueError: mutable default … use default_factory``.

    Since 3.11 a default counts as mutable where its class cannot be hashed, and dataclasses that
    compare by value cannot. Those of the module get the identity hash. `default_factory` is no way
    out: fairseq's ``hydra_init`` reads the `default` of the fields.
    """
    if sys.version_info < (3, 11):
        yield
        return

    def set_hash(cls: type) -> None:
        if "__hash__" not in vars(cls):
            cls.__hash__ = object.__hash__

    def dataclass(cls: type | None = None, **options: Any) -> Any:
        if cls is None:
            return lambda later: dataclass(later, **options)
        set_hash(cls)
        return dataclasses.dataclass(cls, **options)

    def import_(name: str, *args: Any) -> Any:
        imported = builtins.__import__(name, *args)
        return Overlay(imported, dataclass=dataclass) if name == "dataclasses" else imported

    # an import statement takes `__import__` from the module's own builtins
    vars(module)["__builtins__"] = {**vars(builtins), "__import__": import_}
    yield
    base = getattr(module, "FairseqDataclass", None)
    if base is not None:
        # all later configurations, those of plug-ins too, inherit from this class
        base.__init_subclass__ = classmethod(set_hash)


@contextmanager
def no_find_module(module: ModuleType) -> Iterator[None]:
    """Python >= 3.12: ``AttributeError: 'FileFinder' object has no attribute 'find_module'``."""
    yield
    if sys.version_info < (3, 12):
        return

    def walk_packages(*args: Any, **kwargs: Any) -> Iterator[tuple[Any, str, bool]]:
        loader = SimpleNamespace(load_module=importlib.import_module)
        finder = SimpleNamespace(find_module=lambda name: loader)
        for _, name, is_package in pkgutil.walk_packages(*args, **kwargs):
            yield finder, name, is_package

    vars(module)["pkgutil"] = Overlay(pkgutil, walk_packages=walk_packages)


@contextmanager
def no_typing_io(module: ModuleType) -> Iterator[None]:
    """Python >= 3.13: ``ModuleNotFoundError: No module named 'typing.io'``."""
    if sys.version_info >= (3, 13):
        typing_io = ModuleType("typing.io")
        vars(typing_io)["TextIO"] = typing.TextIO
        sys.modules.setdefault("typing.io", typing_io)
    yield


@contextmanager
def unexpected_etype(module: ModuleType) -> Iterator[None]:
    """Python >= 3.10: ``print_exception() got an unexpected keyword argument 'etype'``.

    It hides every error that is raised inside fairseq-hydra-train.
    """
    yield

    def print_exception(etype: None, value: BaseException, tb: Any) -> None:
        traceback.print_exception(type(value), value, tb)

    vars(module)["print_exception"] = print_exception


@contextmanager
def unsupported_global(module: ModuleType) -> Iterator[None]:
    """Torch >= 2.6, loading a checkpoint: ``Unsupported global: GLOBAL argparse.Namespace``.

    fairseq stores options as a `Namespace` and, after ``--eval-bleu``, scores as numpy numbers. The
    safe loader stays on: allowed are types that run no code of their own when they are filled.
    """
    yield
    import numpy as np
    import torch

    builders: dict[str, Any] = {
        "_reconstruct": np.empty(0).__reduce__()[0],
        "scalar": np.float64(0).__reduce__()[0],
    }
    harmless: list[Any] = [Namespace, codecs.encode, np.ndarray, np.dtype]
    harmless += [type(np.dtype(code)) for code in "?bBhHiIlLqQefd"]
    for name, builder in builders.items():
        # numpy 2 moved the module, and files written with either are about
        harmless += [(builder, f"numpy.{core}.multiarray.{name}") for core in ("core", "_core")]
    torch.serialization.add_safe_globals(harmless)


@contextmanager
def unread_broadcast(module: ModuleType) -> Iterator[None]:
    """Torch >= 2.6, several processes that go on from a checkpoint: ``Weights only load failed``.

    The first of them reads the file, with the safe loader, and sends what it holds to the others,
    options as objects among it. Processes of one training trust each other.
    """
    yield
    import torch

    vars(module)["torch"] = Overlay(torch, load=partial(torch.load, weights_only=False))


@contextmanager
def mask_type_undefined(module: ModuleType) -> Iterator[None]:
    """Torch 2, encoder in evaluation, left-padded batch: ``Mask Type should be defined``.

    fairseq calls torch's fused encoder layer without the argument that says which kind of mask the
    last one is; 1 means one of padding, `[B, T]`.
    """
    yield
    import torch

    from hyptrans_startup.fused import encoder_layer

    vars(module)["torch"] = Overlay(torch, _transformer_encoder_layer_fwd=encoder_layer)


@contextmanager
def numpy_alias_removed(module: ModuleType) -> Iterator[None]:
    """Numpy >= 1.24: ``module 'numpy' has no attribute 'int'``, and so `float` and `compat`."""
    yield
    import numpy as np

    aliases = {"int": int, "float": float, "compat": SimpleNamespace(long=int)}
    removed = {name: value for name, value in aliases.items() if not hasattr(np, name)}
    vars(module)["np"] = Overlay(module.np, **removed)


@contextmanager
def numpy_interpolation_removed(module: ModuleType) -> Iterator[None]:
    """Numpy >= 2.4, ``--num-batch-buckets``: ``unexpected keyword argument 'interpolation'``."""
    yield
    percentile = module.np.percentile

    def with_interpolation(*args: Any, interpolation: str, **options: Any) -> Any:
        return percentile(*args, method=interpolation, **options)

    vars(module)["np"] = Overlay(module.np, percentile=with_interpolation)


@contextmanager
def refs_not_strings(module: ModuleType) -> Iterator[None]:
    """Sacrebleu >= 2.6, ``fairseq-score --sacrebleu``: ``refs should be a sequence of strings``."""
    yield
    run = module.cli_main

    def cli_main() -> None:
        import sacrebleu

        corpus_bleu = sacrebleu.corpus_bleu

        def of_lines(system: Any, references: Any, **options: Any) -> Any:
            return corpus_bleu(list(system), [list(lines) for lines in references], **options)

        # fairseq-score imports the package inside its function, so the name is changed there
        vars(sacrebleu)["corpus_bleu"] = of_lines
        try:
            run()
        finally:
            vars(sacrebleu)["corpus_bleu"] = corpus_bleu

    vars(module)["cli_main"] = cli_main


@contextmanager
def bf16_means_tpu(module: ModuleType) -> Iterator[None]:
    """``--bf16`` without a TPU: ``'NoneType' object has no attribute 'xla_device'``.

    fairseq takes the flag for a request for one, on a GPU and a CPU too.
    """
    yield
    stock = module.parse_args_and_arch

    def parse_args_and_arch(*args: Any, **options: Any) -> Any:
        parsed = stock(*args, **options)
        found = parsed[0] if isinstance(parsed, tuple) else parsed
        if getattr(found, "tpu", False) and importlib.util.find_spec("torch_xla") is None:
            found.tpu = False
        return parsed

    vars(module)["parse_args_and_arch"] = parse_args_and_arch


@contextmanager
def pytest_stands_first(module: ModuleType) -> Iterator[None]:
    """Pytest, ``import fairseq`` on Python >= 3.11: ``ValueError: mutable default`` all the same.

    pytest puts its assertion rewriter before all finders, and it takes every file of a package that
    brings a pytest plug-in, as hydra does: the modules with a fix are left to our finder.
    """
    yield
    stock = module.AssertionRewritingHook.find_spec

    def find_spec(self: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        ours = any(name in modules for fixes in FIXES.values() for modules in fixes.values())
        return None if ours else stock(self, name, *args, **kwargs)

    module.AssertionRewritingHook.find_spec = find_spec
