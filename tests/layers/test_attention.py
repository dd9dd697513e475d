"""What every attention does, whatever its geometry: masks, decoding states, memories, gradients."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import pytest
import torch

from hyptrans.layers.attention import Attention, State
from hyptrans.layers.hvt_attention import PoincareAttention
from hyptrans.layers.hybonet import LorentzAttention
from hyptrans.layers.hypformer_attention import LinearAttention, SoftmaxAttention
from tests.geometry.helpers import EXACT, EXACT_IN_BALL, ball, points
from tests.layers.conftest import hyperbolic_attention, hypformer_attention, randomized, vectors

WIDTH, MEMORY_WIDTH = 8, 6
LOOKS_AT_MEMORY = {"memory_width": MEMORY_WIDTH}
pytestmark = pytest.mark.usefixtures("fresh_weights")


class Kind(NamedTuple):
    make: Callable[..., Attention]
    """A float64 layer whose parameters have all moved: ``make(rng, width, heads, **options)``."""
    inputs: Callable[..., torch.Tensor]
    """What it takes: ``inputs(rng, batch, positions, width)``."""
    tolerance: dict[str, float]
    memory: dict[str, float] = LOOKS_AT_MEMORY
    """Options of a layer that looks at a memory."""


def lorentz_attention(rng, width=WIDTH, heads=2, **options):
    return randomized(LorentzAttention(width, heads, **options).double(), rng)


def poincare_attention(rng, width=WIDTH, heads=2, **options):
    return randomized(PoincareAttention(width, heads, **options).double(), rng)


def of_hypformer(kind):
    make = partial(hypformer_attention, kind)
    return Kind(make, points, EXACT, memory={"c_memory": 1.0})


KINDS = {
    "lorentz": Kind(lorentz_attention, points, EXACT),
    "hypformer-linear": of_hypformer(LinearAttention),
    "hypformer-softmax": of_hypformer(SoftmaxAttention),
}
for _aggregation in ("midpoint", "tangent"):
    KINDS[f"poincare-{_aggregation}"] = Kind(
        partial(poincare_attention, aggregation=_aggregation), ball, EXACT_IN_BALL
    )
for _coordinates in ("polar", "cartesian"):
    for _weights in ("softmax", "sigmoid"):
        KINDS[f"han-{_coordinates}-{_weights}"] = Kind(
            partial(hyperbolic_attention, coordinates=_coordinates, weights=_weights),
            vectors,
            EXACT_IN_BALL,
        )


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


def attention(kind, rng, *, looks_at_memory=False, **options):
    return kind.make(rng, **(kind.memory if looks_at_memory else {}), **options)


def weighted_sum(out, rng):
    """A number in which every number of the output counts, also after a layer norm."""
    return (out * vectors(rng, *out.shape)).sum()


def beside_noise(x, noise, side):
    """Both in one row of sentences, padding that is true at the noise, and where ``x`` is."""
    joined = torch.cat([noise, x] if side == "left" else [x, noise], dim=1)
    padding = torch.ones(joined.shape[:2], dtype=torch.bool)
    real = slice(noise.size(1), None) if side == "left" else slice(0, x.size(1))
    padding[:, real] = False
    return joined, padding, real


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("causal", [False, True])
def test_padding_changes_no_real_position_and_gives_finite_gradients(causal, side, kind, rng):
    layer = attention(kind, rng, causal=causal)
    x = kind.inputs(rng, 1, 70, WIDTH)
    padded, padding, real = beside_noise(x, kind.inputs(rng, 1, 3, WIDTH), side)
    out = layer(padded.requires_grad_(), padding=padding)
    torch.testing.assert_close(out[:, real], layer(x), **kind.tolerance)
    weighted_sum(out, rng).backward()
    assert torch.isfinite(padded.grad).all()


# kernels that have no gradient run only where none is wanted
@pytest.mark.parametrize("gradient", [True, False], ids=["gradient", "no gradient"])
@pytest.mark.parametrize("parts", [[1] * 5, [70, 1, 1]], ids=str)
def test_steps_with_a_state_equal_the_whole_sequence(parts, gradient, kind, rng):
    layer = attention(kind, rng, causal=True)
    x = kind.inputs(rng, 3, sum(parts), WIDTH)
    state = State()
    with torch.set_grad_enabled(gradient):
        steps = [layer(part, state=state) for part in x.split(parts, dim=1)]
        torch.testing.assert_close(torch.cat(steps, dim=1), layer(x), **kind.tolerance)
    assert state.kept.rows == 3


def test_cross_attention_reads_the_memory_once(kind, rng):
    layer = attention(kind, rng, looks_at_memory=True)
    x, memory = kind.inputs(rng, 2, 1, WIDTH), kind.inputs(rng, 2, 5, MEMORY_WIDTH)
    state = State()
    first = layer(x, memory, state=state)
    # where rows lie in memory decides the last bit of a product
    again = layer(x, torch.full_like(memory, torch.nan), state=state)
    torch.testing.assert_close(again, first, rtol=0, atol=1e-14)


@pytest.mark.parametrize("length", [1, 4])
@pytest.mark.parametrize("stateful", [False, True])
@pytest.mark.parametrize("gradient", [True, False], ids=["gradient", "no gradient"])
def test_a_memory_shared_by_beams_equals_one_for_each_beam(gradient, stateful, length, kind, rng):
    layer = attention(kind, rng, looks_at_memory=True)
    x, memory = kind.inputs(rng, 6, length, WIDTH), kind.inputs(rng, 2, 5, MEMORY_WIDTH)
    padding = torch.zeros(2, 5, dtype=torch.bool)
    padding[1, :2] = True
    state = State() if stateful else None
    with torch.set_grad_enabled(gradient):
        got = layer(x, memory, padding=padding, state=state)
        each = [t.repeat_interleave(3, dim=0) for t in (memory, padding)]
        torch.testing.assert_close(got, layer(x, each[0], padding=each[1]), **kind.tolerance)


def test_several_positions_after_earlier_ones_are_refused(kind, rng):
    layer, state = attention(kind, rng, causal=True), State()
    layer(kind.inputs(rng, 1, 2, WIDTH), state=state)
    with pytest.raises(ValueError, match="takes one position at a time, got 2"):
        layer(kind.inputs(rng, 1, 2, WIDTH), state=state)


def test_heads_that_do_not_divide_the_width_are_refused(kind, rng):
    with pytest.raises(ValueError, match="width=10 is not divisible by 4 heads"):
        kind.make(rng, 10, 4)


# those of Hypformer have a test of their own, which asks for the gradients of its curvatures too
@pytest.mark.parametrize("name", [name for name in KINDS if not name.startswith("hypformer")])
@pytest.mark.parametrize("looks_at_memory", [False, True], ids=["causal", "memory"])
def test_gradients_agree_with_finite_differences(looks_at_memory, name, rng):
    kind = KINDS[name]
    options = kind.memory if looks_at_memory else {"causal": True}
    layer = kind.make(rng, 6, **options)
    x = kind.inputs(rng, 1, 3, 6).requires_grad_()
    memory = kind.inputs(rng, 1, 4, MEMORY_WIDTH) if looks_at_memory else None
    assert torch.autograd.gradcheck(lambda x, *_: layer(x, memory), (x, *layer.parameters()))


@pytest.mark.parametrize("gradient", [True, False], ids=["gradient", "no gradient"])
@pytest.mark.parametrize("looks_at_memory", [False, True])
def test_a_row_of_only_padding_changes_no_other_row_or_gradient(
    looks_at_memory, gradient, kind, rng
):
    layer = attention(kind, rng, looks_at_memory=looks_at_memory)
    x, memory = kind.inputs(rng, 3, 4, WIDTH), kind.inputs(rng, 3, 5, MEMORY_WIDTH)
    given = (x, memory) if looks_at_memory else (x,)
    padding = torch.zeros(given[-1].shape[:2], dtype=torch.bool)
    padding[0, 3:] = padding[1] = True
    with torch.set_grad_enabled(gradient):
        out = layer(*given, padding=padding)
        real = [0, 2]
        alone = layer(*(part[real] for part in given), padding=padding[real])
    torch.testing.assert_close(out[real], alone, **kind.tolerance)
    assert torch.isfinite(out).all()
    if gradient:
        weighted_sum(out, rng).backward()
        assert all(torch.isfinite(p.grad).all() for p in layer.parameters() if p.grad is not None)
