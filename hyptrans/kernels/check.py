"""The check of kernels before their first use on a device: small cases against the formulas.

The kernels of a family of operators are checked at the first use of the family on a device and
dtype. A family that passes is noted in a file, together with all that its results depend on:
versions, sources, device. A family that fails is switched off.
"""

import functools
import hashlib
import importlib
import json
import math
import os
import pkgutil
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import hyptrans.kernels
from hyptrans import __version__
from hyptrans.geometry import lorentz
from hyptrans.kernels.operator import REGISTRY, Backend, Draw, Operator
from hyptrans.support.errors import UserError
from hyptrans.support.files import write_whole

NOTES = Path("hyptrans") / "kernels.json"
"""In the user's folder for caches: what has passed."""
TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-10, torch.float16: 1e-2, torch.bfloat16: 5e-2}
"""Relative to 1 and to the number; a kernel that is wrong is wrong by more."""
SEED = 20_240_229


def trusted(backend: Backend, device: torch.device, dtype: torch.dtype, family: str) -> bool:
    """Whether the kernels of a family give the results of the plain formulas on a device.

    The answer is found once; where it is no, a warning says what differs.
    """
    key = _key(backend, device, dtype, family)
    if key in _passed():
        return True
    reason = failure(backend, device, dtype, family)
    if reason is not None:
        warnings.warn(
            f"{backend} kernels of {family} are switched off on {device} for {dtype}, and layers "
            f"run slower: {reason}",
            stacklevel=2,
        )
        return False
    _note(key)
    return True


def families() -> list[str]:
    """Import all files with operators; return the families."""
    for module in pkgutil.walk_packages(hyptrans.kernels.__path__, "hyptrans.kernels."):
        # what compiles on the CPU registers nothing, and needs numba
        if not module.name.startswith("hyptrans.kernels.cpu"):
            importlib.import_module(module.name)
    return sorted({operator.family for operator in REGISTRY.values()})


def failure(backend: Backend, device: torch.device, dtype: torch.dtype, family: str) -> str | None:
    """Run every operator of a family beside its formula; return what differs, None if nothing."""
    draw = Draw(torch.Generator("cpu").manual_seed(SEED), device, dtype)
    autocast = torch.autocast(device.type, enabled=False)
    with torch.inference_mode(False), torch.enable_grad(), autocast:
        if (off := _product_off(draw)) > TOLERANCE[dtype]:
            return f"a product of points is off by {off:.2g}"
        for operator in list(REGISTRY.values()):
            asked = operator.family == family and operator.has(backend, dtype)
            if asked and (reason := _failure_of(operator, backend, draw)):
                return reason
    return None


def _product_off(draw: Draw) -> float:
    """How far products of points at distance 3 of the origin are off; in TF32 0.3."""
    space = draw.rows()
    points = lorentz.lift(math.sinh(3) * space / space.norm(dim=-1, keepdim=True)).detach()
    exact = lorentz.pairwise_inner(points.double(), points.double())
    off = (lorentz.pairwise_inner(points, points) - exact).abs() / exact.abs().clamp_min(1)
    return float(off.nan_to_num(math.inf).max())


def _failure_of(operator: Operator, backend: Backend, draw: Draw) -> str | None:
    cases = list(operator.cases(draw))
    if not cases:
        return f"{operator.name} has no case to be checked with"
    kernels = operator.kernels.get(backend)
    gradients = operator.differentiable if kernels is None else kernels.backward is not None
    for name, operands in cases:
        try:
            got, expected = (
                results_of(function, operands, gradients)
                for function in (functools.partial(operator.run, backend), operator.plain)
            )
        except Exception as error:
            return f"{name} ends with {type(error).__name__}: {' '.join(str(error).split())}"
        for ours, theirs in zip(got, expected, strict=True):
            if ours.shape != theirs.shape:
                return f"{name} has the shape {tuple(ours.shape)}, not {tuple(theirs.shape)}"
            off = (ours - theirs).abs() / theirs.abs().clamp_min(1)
            # written so that NaN is no pass
            if not bool((off <= TOLERANCE[draw.dtype]).all()):
                return f"{name} is off by {float(off.max()):.2g}"
    return None


def results_of(
    function: Callable[..., Any], operands: Sequence[Any], gradients: bool
) -> list[Tensor]:
    """The results of a function for copies of operands, and gradients of a sum of the results.

    If wanted, gradients are those of all operands that are tensors of floating-point numbers.
    """
    # what has a gradient is not written over, and stays where it lies in memory
    given = [
        (x.detach() if gradients else x.clone()) if isinstance(x, Tensor) else x for x in operands
    ]
    wanted = [x.requires_grad_() for x in given if gradients and _has_gradient(x)]
    with torch.set_grad_enabled(gradients):
        made = function(*given)
    made = [made] if isinstance(made, Tensor) else list(made)
    if not gradients:
        return made
    weights = [torch.arange(y.numel(), device=y.device).cos().to(y.dtype).view_as(y) for y in made]
    return [*(y.detach() for y in made), *torch.autograd.grad(made, wanted, weights)]


def _has_gradient(x: Any) -> bool:
    return isinstance(x, Tensor) and x.is_floating_point()


def _key(backend: Backend, device: torch.device, dtype: torch.dtype, family: str) -> str:
    compiler = importlib.import_module({"inductor": "torch"}.get(backend, backend)).__version__
    if device.type == "cuda":
        name = f"{torch.cuda.get_device_name(device)} {torch.cuda.get_device_capability(device)}"
    else:
        name = importlib.import_module("llvmlite.binding").get_host_cpu_name()
    interpreted = os.environ.get("TRITON_INTERPRET", "")
    parts = (__version__, _sources(), torch.__version__, backend, compiler, interpreted, name)
    return " | ".join(map(str, (*parts, dtype, family)))


@functools.cache
def _sources() -> str:
    folder = Path(__file__).parent
    files = [*folder.rglob("*.py"), *(folder.parent / "geometry").glob("*.py")]
    return hashlib.sha256(b"".join(file.read_bytes() for file in sorted(files))).hexdigest()[:16]


def _notes() -> Path | None:
    """Where notes are kept; None where there is no folder for them."""
    cache = os.environ.get("XDG_CACHE_HOME")
    if cache:
        return Path(cache) / NOTES
    try:
        home = Path.home()
    except RuntimeError:  # of a user without one
        return None
    return home / ".cache" / NOTES if home.is_dir() else None


def _passed() -> list[str]:
    path = _notes()
    try:
        found = json.loads(path.read_text(encoding="utf-8")) if path else []
    except (OSError, ValueError):
        return []
    return found if isinstance(found, list) else []


def _note(key: str) -> None:
    path = _notes()
    if path is None:
        return
    try:
        write_whole(path, json.dumps([*_passed(), key], indent=1) + "\n")
    except (OSError, UserError):
        return  # it cannot be written, or another process writes it: checked again by the next
