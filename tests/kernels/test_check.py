"""Kernels are checked at their first use: what is wrong is seen, told once, and left out."""

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch

from hyptrans.geometry import lorentz, poincare
from hyptrans.kernels import check, heads, hyperboloid, operator
from hyptrans.kernels.ball import heads as of_heads
from hyptrans.kernels.cpu import jobs
from hyptrans.kernels.dropout import RELU_DROPOUT
from hyptrans.kernels.hyperboloid import LIFT
from hyptrans.kernels.operator import REGISTRY
from hyptrans.support.files import whole_file
from tests.kernels import unit_rows
from tests.kernels.contract import CASES

CPU = torch.device("cpu")
FAMILIES = sorted({one.family for one in REGISTRY.values()})
WAYS = [
    pytest.param(one, way, id=f"{name}-{way}")
    for name, one in REGISTRY.items()
    for way in ("forward", "backward")
    if getattr(one.kernels["numba"], way)
]


def failure(family="hyperboloid", dtype=torch.float32):
    return check.failure("numba", CPU, dtype, family)


@pytest.fixture(autouse=True)
def fresh(monkeypatch, tmp_path):
    """As at the first use by a user without notes."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("HYPTRANS_KERNELS", raising=False)
    operator._trusted.cache_clear()
    yield
    operator._trusted.cache_clear()


def spoil(monkeypatch, one, way, harm):
    """Let a kernel of the CPU do harm to the last of what it has computed."""
    stock = one.kernels["numba"]

    def spoiled(*args):
        found = getattr(stock, way)(*args)
        made = found if way == "backward" else found[0]
        made = [made] if isinstance(made, torch.Tensor) else made
        harm([x for x in made if x is not None][-1])
        return found

    monkeypatch.setitem(one.kernels, "numba", stock._replace(**{way: spoiled}))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("family", FAMILIES)
def test_kernels_of_the_cpu_pass(family, dtype):
    assert failure(family, dtype) is None


@pytest.mark.parametrize("harm", [0.01, float("nan")])
@pytest.mark.parametrize(("one", "way"), WAYS)
def test_wrong_kernel_is_named(one, way, harm, monkeypatch):
    spoil(monkeypatch, one, way, lambda out: out[(-1,) * out.dim()].mul_(1 + harm).add_(harm))
    named, off, _ = failure(one.family).partition(" is off by ")
    assert CASES[named] is one
    assert off


def test_a_new_operator_is_one_file():
    text = Path(unit_rows.__file__).read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 60
    # the contract of each backend, the check and the compiler's test go through the registry
    one, x = CASES["unit rows"], torch.randn(40, 6, requires_grad=True)
    assert one.backend(x) == "numba"
    torch.testing.assert_close(one(x), unit_rows.plain(x))


def test_products_of_points_in_tf32_do_not_pass(monkeypatch):
    def shortened(x, y):
        if x.dtype == torch.float64:
            return x @ y
        # eleven bits of a number, as tensor cores read it
        halves = (x.view(torch.int32) & ~0x1FFF).view(torch.float32)
        return halves @ (y.contiguous().view(torch.int32) & ~0x1FFF).view(torch.float32)

    monkeypatch.setattr(lorentz, "matrix_product", shortened)
    assert failure().startswith("a product of points is off by 0.")


def test_operator_without_a_case_does_not_pass(monkeypatch):
    monkeypatch.setattr(LIFT, "cases", lambda draw: iter(()))
    assert failure() == "lift has no case to be checked with"


def test_result_of_another_shape_does_not_pass(monkeypatch):
    monkeypatch.setattr(LIFT, "plain", lambda space, c, relu: lorentz.lift(space, c=c)[:1])
    assert failure() == "lift has the shape (6, 50, 10), not (1, 50, 10)"


def test_another_operator_of_one_name_is_refused():
    with pytest.raises(ValueError, match="there is an operator 'lift' already"):
        operator.Operator("lift", LIFT.plain, cases=LIFT.cases)


def test_nearer_clamp_of_midpoints_is_named(monkeypatch):
    # as that of points was once taken for it: 0.996, which is distance 3.1
    nearer = poincare.max_norm(torch.float32), torch.finfo(torch.float32).eps, poincare.LEAST_TOTAL

    def clamped(total, c):
        return heads.made_numbers(of_heads.centroid_forward, total, (2 * c**0.5, *nearer, 1.0))

    stock = of_heads.CENTROID_TANGENT.kernels["numba"]
    kernels = stock._replace(forward=clamped)
    monkeypatch.setitem(of_heads.CENTROID_TANGENT.kernels, "numba", kernels)
    assert failure("ball.heads").startswith("mean of heads is off by ")


def test_kernel_that_does_not_compile_is_named(monkeypatch):
    def fail(*_):
        raise RuntimeError("out of\nregisters")

    monkeypatch.setitem(LIFT.kernels, "numba", operator.Kernels(fail, fail))
    assert failure() == "lift ends with RuntimeError: out of registers"


def test_wrong_kernels_are_switched_off_with_one_sentence(monkeypatch):
    spoil(monkeypatch, LIFT, "forward", lambda out: out.mul_(2))
    space = torch.randn(40, 5)
    with pytest.warns(
        UserWarning, match="numba kernels of hyperboloid are switched off on cpu .*lift is off by"
    ):
        lifted = hyperboloid.lift(space)
    torch.testing.assert_close(lifted, lorentz.lift(space))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert LIFT.backend(space) == "eager"
        assert RELU_DROPOUT.backend(space) == "numba"


def test_what_has_passed_is_noted_by_what_decides_it(monkeypatch, tmp_path):
    assert check.trusted("numba", CPU, torch.float32, "hyperboloid")
    (key,) = json.loads((tmp_path / "cache" / "hyptrans" / "kernels.json").read_text())
    assert "numba" in key
    assert torch.__version__ in key

    def again(*_):
        raise AssertionError("checked again")

    with monkeypatch.context() as patched:
        patched.setattr(check, "failure", again)
        assert check.trusted("numba", CPU, torch.float32, "hyperboloid")
        patched.setattr(check, "__version__", "9.9.9")
        with pytest.raises(AssertionError, match="checked again"):
            check.trusted("numba", CPU, torch.float32, "hyperboloid")


@pytest.mark.parametrize("content", ["", "{", "3", "[]"])
def test_damaged_notes_are_made_anew(content, tmp_path):
    notes = tmp_path / "cache" / "hyptrans" / "kernels.json"
    notes.parent.mkdir(parents=True)
    notes.write_text(content)
    assert check.trusted("numba", CPU, torch.float32, "hyperboloid")
    assert len(json.loads(notes.read_text())) == 1


def test_notes_that_another_process_writes_are_left_to_it(tmp_path):
    notes = check._notes()
    notes.parent.mkdir(parents=True)
    with whole_file(notes) as file:
        check._note("own")
        file.write(b'["of the other"]')
    assert check._passed() == ["of the other"]


def test_no_home_is_made_for_notes(monkeypatch, tmp_path):
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "missing"))
    assert check.trusted("numba", CPU, torch.float32, "hyperboloid")
    assert not (tmp_path / "missing").exists()


def test_folder_that_cannot_be_written_stops_nothing(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert check.trusted("numba", CPU, torch.float32, "hyperboloid")


def test_check_leaves_random_numbers_and_modes_as_they_are():
    state = torch.get_rng_state()
    with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
        assert failure() is None
        assert torch.is_inference_mode_enabled()
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("family", FAMILIES)
def test_another_default_device_changes_nothing(family):
    # as on a GPU; a tensor made without a device would have no numbers here
    with torch.device("meta"):
        assert failure(family) is None
        lifted = hyperboloid.lift(torch.ones(2, 3, device="cpu"))
        dropped = RELU_DROPOUT(torch.ones(2, 3, device="cpu"), 0.5, True, 7)
    assert lifted.device == dropped.device == CPU


COMPILED = """
import torch
from hyptrans.kernels import klein
from hyptrans.kernels.cpu import jobs
compiled, stock = [], jobs.compiled
def noted(kernel, *args, **options):
    compiled.append(f"{kernel.__module__.rpartition('.')[2]}.{kernel.__name__}")
    return stock(kernel, *args, **options)
jobs.compiled = noted
klein.polar_heads(torch.ones(1, 2, 3, 8), 2, 1.0)
print(*sorted(compiled))
"""


@pytest.mark.slow
def test_nothing_is_compiled_that_belongs_to_other_architectures(tmp_path):
    env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", COMPILED], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [
        "jobs.work_off",
        "klein.midpoint_backward",
        "klein.midpoint_forward",
        "klein.polar_backward",
        "klein.polar_forward",
    ]


@pytest.mark.parametrize("one", [one for one in REGISTRY.values() if not one.kernels["triton"]])
def test_what_cuda_has_no_kernels_for_is_eager_there_and_reads_no_memory_as_the_cpus(
    one, monkeypatch
):
    # what Triton interprets lies on the CPU, where a job of numba would find it
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setenv("HYPTRANS_KERNELS", "triton")
    monkeypatch.setattr(jobs, "run", lambda *_, **__: pytest.fail("a kernel of the CPU was asked"))
    assert operator.possible(torch.ones(2, 3)) == "triton"
    assert one.backend(torch.ones(2, 3)) == "eager"


def test_triton_is_not_imported_where_no_kernel_of_it_runs():
    code = (
        "import sys, torch, hyptrans.kernels.points as points; "
        "points.points(torch.ones(2, 1, 1, 4), torch.ones(1), c=1.0); "
        "print('triton' in sys.modules)"
    )
    env = os.environ | {"HYPTRANS_KERNELS": "eager"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
