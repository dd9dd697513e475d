"""What kernels must show before they are trusted on a device: small numbers as the formulas give.

A part of a backend is checked at its first use on a device and dtype. One that passes is noted down
by what decides its results: versions, sources, device; one that does not pass is left out.
"""

import contextlib
import functools
import hashlib
import importlib
import json
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor

from hyptrans import __version__
from hyptrans.geometry import lorentz
from hyptrans.geometry.precision import HALF
from hyptrans.kernels import cpu_cases, functions, loss, operators
from hyptrans.kernels.backend import Backend, Part, launcher, under_check
from hyptrans.kernels.operands import LossOperands
from hyptrans.support.errors import UserError
from hyptrans.support.files import write_whole

NOTES = Path("hyptrans") / "kernels.json"
"""In the user's folder for caches: what has passed."""
TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-10, torch.float16: 1e-2, torch.bfloat16: 5e-2}
"""Relative to 1 and to the number; a kernel that is wrong is wrong by more."""
ROWS, WIDTH = 300, 9
"""More rows than a block of the CPU's has, and a width that fills no tile."""
PROBABILITY = 0.25
SEED = 20_240_229

Call = Callable[[], Sequence[Tensor]]


def trusted(backend: Backend, device: torch.device, dtype: torch.dtype, part: Part) -> bool:
    """Whether a part of a backend gives the results of the plain formulas on a device.

    It is found out once; where it does not, a warning says what differs.
    """
    key = _key(backend, device, dtype, part)
    if key in _passed():
        return True
    reason = failure(backend, device, dtype, part)
    if reason is not None:
        warnings.warn(
            f"{backend} kernels of {part} are switched off on {device} for {dtype}, and layers run "
            f"slower: {reason}",
            stacklevel=2,
        )
        return False
    _note(key)
    return True


def failure(backend: Backend, device: torch.device, dtype: torch.dtype, part: Part) -> str | None:
    """Run every operator of a part beside its formula; return what differs, None if nothing."""
    rng = torch.Generator().manual_seed(SEED)

    def numbers(*shape: int) -> Tensor:
        return torch.randn(shape, generator=rng, dtype=torch.float64).to(device, dtype)

    autocast = torch.autocast(device.type, enabled=False)
    with torch.inference_mode(False), torch.enable_grad(), autocast, _under_check():
        for name, kernel, formula in _operators(backend, numbers, dtype, part):
            try:
                got, expected = kernel(), formula()
            except Exception as error:
                return f"{name} ends with {type(error).__name__}: {' '.join(str(error).split())}"
            for ours, theirs in zip(got, expected, strict=True):
                off = (ours - theirs).abs() / theirs.abs().clamp_min(1)
                # written so that NaN is no pass
                if not bool((off <= TOLERANCE[dtype]).all()):
                    return f"{name} is off by {float(off.max()):.2g}"
    return None


@contextlib.contextmanager
def _under_check() -> Iterator[None]:
    token = under_check.set(True)
    try:
        yield
    finally:
        under_check.reset(token)


def _operators(
    backend: Backend, numbers: Callable[..., Tensor], dtype: torch.dtype, part: Part
) -> Iterator[tuple[str, Call, Call]]:
    """Names of operators, what kernels make of small tensors, and what formulas make of them."""
    if part == "dropout":
        for relu in (False, True):
            yield _dropout(backend, numbers(ROWS, WIDTH), relu)
    if dtype in HALF:
        return  # of half precision the kernels are given nothing else
    if part == "loss":
        yield _losses(backend, numbers(ROWS, 50))
    if part == "points":
        yield from _of_points(backend, numbers, dtype)
    if backend != "numba":
        return
    yield from cpu_cases.without_gradient(part, numbers)
    for case, given, kernel, formula in cpu_cases.cases(part, numbers):
        yield (
            case,
            functools.partial(_differentiated, given, kernel),
            functools.partial(_differentiated, given, formula),
        )


def _of_points(
    backend: Backend, numbers: Callable[..., Tensor], dtype: torch.dtype
) -> Iterator[tuple[str, Call, Call]]:
    x = numbers(ROWS, WIDTH)
    for heads, of in ((1, "residual"), (3, "queries")):
        yield _points(backend, numbers, heads, of)
    c = torch.tensor(0.5, dtype=dtype, device=x.device)
    upright = torch.cat([x.square().sum(-1, keepdim=True).sqrt() + 0.5, x], dim=-1)
    for name, rows, ours, plain in (
        ("lift", x, functions.lift, lorentz.lift),
        ("normalize", upright, functions.normalize, lorentz.normalize),
    ):
        inputs = [rows, c]
        yield (
            name,
            functools.partial(_differentiated, inputs, lambda r, k, f=ours: (f(backend, r, k),)),
            functools.partial(_differentiated, inputs, lambda r, k, f=plain: (f(r, c=k),)),
        )


def _differentiated(
    inputs: Sequence[Tensor], function: Callable[..., Sequence[Tensor]]
) -> list[Tensor]:
    """What a function makes of inputs, and the gradients of a sum of it over them."""
    inputs = [x.detach().requires_grad_() for x in inputs]
    out = list(function(*inputs))
    total = sum((y * y.detach().cos()).sum() for y in out)
    assert isinstance(total, Tensor)
    return [*(y.detach() for y in out), *torch.autograd.grad(total, inputs)]


def _points(
    backend: Backend, numbers: Callable[..., Tensor], heads: int, of: str
) -> tuple[str, Call, Call]:
    z = numbers(ROWS, heads, heads, WIDTH)
    inputs = [z, numbers(heads)]
    inputs.append(numbers(ROWS, WIDTH) if of == "residual" else numbers(1)[0])

    def split(extra: Tensor) -> tuple[Tensor | None, Tensor | None]:
        return (extra, None) if of == "residual" else (None, extra)

    return (
        f"points with {of}",
        lambda: _differentiated(
            inputs, lambda z, s, e: functions.points(backend, z, s, *split(e), 0.5, True)
        ),
        lambda: _differentiated(
            inputs,
            lambda z, s, e: operators.plain_points(
                z, s, c=0.5, residual=split(e)[0], residual_time=True, query_factor=split(e)[1]
            ).unbind(-3),
        ),
    )


def _dropout(backend: Backend, x: Tensor, relu: bool) -> tuple[str, Call, Call]:
    """Which numbers are kept is the kernel's own affair, but for how many and that they stay."""
    kept: list[Tensor] = []

    def kernel() -> list[Tensor]:
        out, grad = _differentiated(
            [x], lambda y: (functions.relu_dropout(backend, y, PROBABILITY, relu, SEED),)
        )
        again = functions.relu_dropout(backend, torch.ones_like(x), PROBABILITY, relu, SEED)
        kept.append(again > 0)
        share = kept[0].double().mean()
        return [out, grad, ((share - (1 - PROBABILITY)).abs() < 0.05).to(x.dtype)]

    def formula() -> list[Tensor]:
        scale = kept[0].to(x.dtype) / (1 - PROBABILITY)
        out, grad = _differentiated([x], lambda y: ((torch.relu(y) if relu else y) * scale,))
        return [out, grad, torch.ones((), dtype=x.dtype, device=x.device)]

    return f"dropout{' after ReLU' if relu else ''}", kernel, formula


def _losses(backend: Backend, logits: Tensor) -> tuple[str, Call, Call]:
    targets = torch.arange(len(logits), device=logits.device) % logits.size(-1)

    def kernel() -> list[Tensor]:
        grad, losses = logits.clone(), logits.new_empty(len(logits), 2)
        launcher(backend).cross_entropy(LossOperands(grad, targets, 0.9, 0.002, True), losses)
        return [losses, grad]

    def formula() -> list[Tensor]:
        grad = logits.clone()
        return [loss.plain_losses_(LossOperands(grad, targets, 0.9, 0.002, True)), grad]

    return "cross entropy", kernel, formula


def _key(backend: Backend, device: torch.device, dtype: torch.dtype, part: Part) -> str:
    compiler = importlib.import_module(backend).__version__
    if device.type == "cuda":
        name = f"{torch.cuda.get_device_name(device)} {torch.cuda.get_device_capability(device)}"
    else:
        name = importlib.import_module("llvmlite.binding").get_host_cpu_name()
    interpreted = os.environ.get("TRITON_INTERPRET", "")
    parts = (__version__, _sources(), torch.__version__, backend, compiler, interpreted, name)
    return " | ".join(map(str, (*parts, dtype, part)))


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
