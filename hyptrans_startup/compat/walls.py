"""What stops fairseq 0.12.2 on today's versions: one step for each wall, told by its symptom.

`hyptrans_startup.STEPS` says which function or module a step stands around. A step changes what one
module sees and leaves Python, torch, numpy and hydra as they are.
"""

import builtins
import dataclasses
import functools
import importlib
import importlib.util
import sys
import typing
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

from hyptrans_startup import MODULES
from hyptrans_startup.wrapping import Call, Overlay, after


@contextmanager
def mutable_default(module: ModuleType) -> Iterator[None]:
    """Python >= 3.11: ``ValueError: mutable default … use default_factory``.

    Since 3.11 a default counts as mutable if its class cannot be hashed, as dataclasses that
    compare by value cannot. The dataclasses of the module get the identity hash. `default_factory`
    is no way out: fairseq's ``hydra_init`` reads the `default` of the fields.
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


def no_find_module(walk: Call, *args: Any, **kwargs: Any) -> Iterator[tuple[Any, str, bool]]:
    """Python >= 3.12: ``AttributeError: 'FileFinder' object has no attribute 'find_module'``."""
    if sys.version_info < (3, 12):
        yield from walk(*args, **kwargs)
        return
    loader = SimpleNamespace(load_module=importlib.import_module)
    finder = SimpleNamespace(find_module=lambda name: loader)
    for _, name, is_package in walk(*args, **kwargs):
        yield finder, name, is_package


@contextmanager
def no_typing_io(module: ModuleType) -> Iterator[None]:
    """Python >= 3.13: ``ModuleNotFoundError: No module named 'typing.io'``."""
    if sys.version_info >= (3, 13):
        typing_io = ModuleType("typing.io")
        vars(typing_io)["TextIO"] = typing.TextIO
        sys.modules.setdefault("typing.io", typing_io)
    yield


def unexpected_etype(print_exception: Call, etype: None, value: BaseException, tb: Any) -> None:
    """Python >= 3.10: ``print_exception() got an unexpected keyword argument 'etype'``.

    Hydra's call hides every error that is raised inside fairseq-hydra-train.
    """
    print_exception(type(value), value, tb)


def unread_broadcast(load: Call, *args: Any, **options: Any) -> Any:
    """Torch >= 2.6, several processes that go on from a checkpoint: ``Weights only load failed``.

    The first process reads the file, and sends its content, options as objects included, to the
    others. Processes of one training trust each other.
    """
    return load(*args, weights_only=False, **options)


@contextmanager
def mask_type_undefined(module: ModuleType) -> Iterator[None]:
    """Torch 2, encoder in evaluation, left-padded batch: ``Mask Type should be defined``.

    fairseq calls torch's fused encoder layer without the argument that names the kind of its mask.
    """
    yield
    import torch

    from hyptrans_startup.compat.fused import encoder_layer

    vars(module)["torch"] = Overlay(torch, _transformer_encoder_layer_fwd=encoder_layer)


@contextmanager
def deprecated_autocast(module: ModuleType) -> Iterator[None]:
    """Torch >= 2.4: ``FutureWarning: torch.cuda.amp.autocast is deprecated``, at each start."""
    yield
    import torch

    amp = Overlay(torch.cuda.amp, autocast=functools.partial(torch.amp.autocast, "cuda"))
    vars(module)["torch"] = Overlay(torch, cuda=Overlay(torch.cuda, amp=amp))


@contextmanager
def numpy_alias_removed(module: ModuleType) -> Iterator[None]:
    """Numpy >= 1.24: ``module 'numpy' has no attribute 'int'``, and so `float` and `compat`."""
    yield
    import numpy as np

    aliases = {"int": int, "float": float, "compat": SimpleNamespace(long=int)}
    removed = {name: value for name, value in aliases.items() if not hasattr(np, name)}
    vars(module)["np"] = Overlay(module.np, **removed)


def numpy_interpolation_removed(
    percentile: Call, *args: Any, interpolation: str, **options: Any
) -> Any:
    """Numpy >= 2.4, ``--num-batch-buckets``: ``unexpected keyword argument 'interpolation'``."""
    return percentile(*args, method=interpolation, **options)


def refs_not_strings(run: Call) -> None:
    """Sacrebleu >= 2.6, ``fairseq-score --sacrebleu``: ``refs should be a sequence of strings``."""
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


@after
def bf16_means_tpu(parsed: Any, *_: Any, **__: Any) -> None:
    """``--bf16`` without a TPU: ``'NoneType' object has no attribute 'xla_device'``.

    fairseq takes the flag for a request for a TPU, on a GPU and a CPU too.
    """
    options = parsed[0] if isinstance(parsed, tuple) else parsed
    if getattr(options, "tpu", False) and importlib.util.find_spec("torch_xla") is None:
        options.tpu = False


def pytest_stands_first(find_spec: Call, hook: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    """Pytest, ``import fairseq`` on Python >= 3.11: ``ValueError: mutable default`` all the same.

    pytest puts its assertion rewriter before all finders, and the rewriter takes every file of a
    package that brings a pytest plug-in, as hydra does. Modules with a step are left to our finder.
    """
    return None if name in MODULES else find_spec(hook, name, *args, **kwargs)
