"""All of attention in one pass for a few queries, against the papers' formulas and torch's."""

import pytest
import torch

from hyptrans.geometry import klein, lorentz
from hyptrans.kernels import few_queries
from hyptrans.kernels.few_queries import CENTROIDS, FEW_QUERIES
from hyptrans.kernels.linear_attention import head_maps, linear_read, linear_step, plain_focus
from hyptrans.layers.hypformer_linear_attention import DENOMINATOR_FLOOR, Sums, read, step
from hyptrans.layers.lorentz.mix import lorentz_mix
from tests.kernels.contract import TOLERANCE, numbers


def positions(rng, dtype, *, rows=7, length=9, queries=3, radius=2.0):
    """Queries ``2 / tau (-t, s)``, and keys and values of every row, in memory positions first."""

    def points(*shape):
        space = numbers(rng, *shape, 5) * radius
        return lorentz.lift(space, c=0.5).to(dtype).transpose(1, 2)

    query = lorentz.flip_time(points(rows, queries, 2)) * 0.4
    return query, points(rows, length, 2), points(rows, length, 2)


def direct_centroids(query, key, value, seen, c):
    """Weights and centroids as the paper writes them, in float64."""
    query, key, value = query.double(), key.double(), value.double()
    products = lorentz.inner(lorentz.flip_time(query)[..., None, :] / 0.4, key[..., None, :, :])
    scores = (2 / c + 2 * products) * 0.2  # -d2 / tau with tau = 2 / 0.4
    weights = scores.masked_fill(~seen, -torch.inf).softmax(-1)
    return lorentz.normalize(weights @ value, c=c)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("length", [1, 9, 70])
@pytest.mark.parametrize("masked", [False, True])
def test_a_few_queries_get_the_centroids_of_the_paper(masked, length, dtype, rng):
    query, key, value = positions(rng, dtype, length=length)
    allowed = torch.rand(7, 1, 1, length, generator=rng) < 0.6
    allowed[..., 0] = True
    seen = allowed if masked else torch.ones_like(allowed)
    with torch.no_grad():
        assert few_queries.in_one_pass(query, CENTROIDS)
        out = lorentz_mix(
            query, key, value, c=0.5, allowed=allowed if masked else None, is_causal=False
        )
    assert out.dtype == dtype
    expected = direct_centroids(query, key, value, seen, 0.5)
    torch.testing.assert_close(out.double(), expected, rtol=0, atol=8 * TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_keys_and_values_are_read_where_they_stand(dtype, rng):
    query, key, value = positions(rng, dtype, queries=1)
    places = torch.randint(63, (7, 12), generator=rng)
    keys, values = (t.transpose(1, 2).flatten(0, 1) for t in (key, value))
    wide = torch.full((63, 2, 12), torch.nan, dtype=dtype)
    wide[..., 3:9] = keys
    with torch.no_grad():
        out = few_queries.centroids(query, wide[..., 3:9], values, places, c=torch.tensor(0.5))
    taken = [t[places].transpose(1, 2) for t in (keys, values)]
    expected = direct_centroids(query, *taken, torch.ones(7, 1, 1, 12, dtype=torch.bool), 0.5)
    torch.testing.assert_close(out.double(), expected, rtol=0, atol=8 * TOLERANCE[dtype])


@pytest.mark.parametrize("radius", [1e-4, 300.0])
def test_a_few_queries_near_and_far_agree_with_fused_attention(radius, rng, monkeypatch):
    query, key, value = positions(rng, torch.float32, radius=radius)
    with torch.no_grad():
        one_pass = lorentz_mix(query, key, value, c=0.5, allowed=None, is_causal=False)
        monkeypatch.setenv("HYPTRANS_KERNELS", "eager")
        fused = lorentz_mix(query, key, value, c=0.5, allowed=None, is_causal=False)
    assert torch.isfinite(one_pass).all()
    # scores reach 1e5, where float32 numbers are 0.01 apart
    atol = 1e-5 if radius < 1 else 0.02 * fused.abs().max().item()
    torch.testing.assert_close(one_pass, fused, rtol=0, atol=atol)


def test_centroids_of_points_whose_times_are_rounded_are_finite(rng):
    # far out float32 may have no more time than length: points that are on no hyperboloid
    query, key, value = positions(rng, torch.float32, length=1, radius=1e6)
    value = value * torch.tensor([1 - 1e-6, 1, 1, 1, 1, 1])
    assert (value[..., 0] < value[..., 1:].norm(dim=-1)).any()
    with torch.no_grad():
        out = lorentz_mix(query, key, value, c=0.5, allowed=None, is_causal=False)
    assert torch.isfinite(out).all()
    far = out.double()
    torch.testing.assert_close(far[..., 0], far[..., 1:].norm(dim=-1), rtol=1e-5, atol=0)


def test_fused_attention_is_left_what_the_kernel_does_not_do(rng):
    query, key, value = positions(rng, torch.float32)
    assert not few_queries.in_one_pass(query, CENTROIDS)  # a gradient may be wanted
    square = torch.ones(7, 1, 3, 9, dtype=torch.bool).tril()
    with torch.no_grad():
        assert not few_queries.in_one_pass(torch.ones(1, 1, FEW_QUERIES + 1, 3), CENTROIDS)
        out = lorentz_mix(query, key, value, c=0.5, allowed=square, is_causal=False)
        causal = lorentz_mix(
            query, key[:, :, :3], value[:, :, :3], c=0.5, allowed=None, is_causal=True
        )
    torch.testing.assert_close(out, causal)
    expected = direct_centroids(query, key, value, square, 0.5)
    torch.testing.assert_close(out.double(), expected, rtol=0, atol=4e-4)


def test_a_memory_for_all_rows_is_left_to_fused_attention(rng):
    query, key, value = positions(rng, torch.float64)
    with torch.no_grad():
        out = lorentz_mix(query, key[:1], value[:1], c=0.5, allowed=None, is_causal=False)
        with pytest.raises(ValueError, match="7 rows of queries need as many of places, got 1"):
            few_queries.centroids(query, key[0], value[0], torch.zeros(1, 2).long(), c=0.5)
    seen = torch.ones(1, 1, 1, 9, dtype=torch.bool)
    expected = direct_centroids(query, key[:1], value[:1], seen, 0.5)
    torch.testing.assert_close(out, expected, rtol=0, atol=1e-10)


def test_nothing_to_look_at_is_refused(rng):
    query, key, value = positions(rng, torch.float64)
    with torch.no_grad(), pytest.raises(ValueError, match="at least one place to look at"):
        few_queries.centroids(query, key[0], value[0], torch.zeros(7, 0).long(), c=0.5)


# by distances


def in_table(rng, dtype, *, length=12, queries=3, radius=2.0):
    """Queries, a table of keys and values in a wider one, places in it, and scales."""
    query, key, value = positions(rng, dtype, rows=7, length=9, queries=queries, radius=radius)
    query, key, value = (lorentz.lift(t[..., 1:]) for t in (query, key, value))
    keys, values = (t.transpose(1, 2).flatten(0, 1) for t in (key, value))
    wide = torch.full((63, 2, 12), torch.nan, dtype=dtype)
    wide[..., 3:9] = keys
    places = torch.randint(63, (7, length), generator=rng)
    return query, wide[..., 3:9], values, places, -numbers(rng, 2, dtype=dtype).exp()


def direct_midpoints(query, keys, values, places, scale):
    """Weights and midpoints as the paper writes them, in float64, a head at a time."""
    query, keys, values, scale = (t.double() for t in (query, keys, values, scale))
    out = []
    for h in range(len(scale)):
        key, value = keys[places.clamp_min(0), h], values[places.clamp_min(0), h]
        apart = torch.acosh((-lorentz.inner(query[:, h, :, None], key[:, None])).clamp_min(1))
        scores = (scale[h] * apart).masked_fill(places[:, None] < 0, -torch.inf)
        factors = scores.softmax(-1) * value[:, None, :, 0]
        coordinates = (value[..., 1:] / value[..., :1])[:, None]
        out.append((factors[..., None] * coordinates).sum(2) / factors.sum(-1, keepdim=True))
    return torch.stack(out, dim=1)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("length", [1, 4, 11, 70])
@pytest.mark.parametrize("masked", [False, True])
def test_a_few_queries_get_the_midpoints_of_the_paper(masked, length, dtype, rng):
    given = in_table(rng, dtype, length=length)
    if masked:
        given[3][torch.rand(7, length, generator=rng) < 0.4] = -1
        given[3][:, 0] = 5
    with torch.no_grad():
        out = few_queries.midpoints(*given)
    assert out.dtype == dtype
    expected = direct_midpoints(*given)
    torch.testing.assert_close(out.double(), expected, rtol=0, atol=8 * TOLERANCE[dtype])


@pytest.mark.parametrize("radius", [1e-4, 300.0])
def test_midpoints_near_and_far_agree_with_the_formula(radius, rng):
    query, keys, values, places, scale = in_table(rng, torch.float32, radius=radius)
    with torch.no_grad():
        out = few_queries.midpoints(query, keys, values, places, scale)
        key, value = (t[places].transpose(1, 2) for t in (keys, values))
        apart = klein.distances(query, key) * scale[:, None, None]
        expected = klein.midpoint(apart.softmax(-1), value)
    assert torch.isfinite(out).all()
    # near each other distances are rounding alone, and so are the weights
    torch.testing.assert_close(out, expected, rtol=0, atol=3e-4 * expected.abs().max().item())


def test_who_looks_at_nothing_gets_the_origin(rng):
    given = in_table(rng, torch.float32)
    with torch.no_grad():
        expected = few_queries.midpoints(*given)
        given[3][2] = -1
        out = few_queries.midpoints(*given)
    expected[2] = 0
    torch.testing.assert_close(out, expected, rtol=0, atol=0)


def test_midpoints_of_too_few_places_are_refused(rng):
    query, keys, values, places, scale = in_table(rng, torch.float32)
    with pytest.raises(ValueError, match="7 rows of queries need as many of places, got 6"):
        few_queries.midpoints(query, keys, values, places[:6], scale)


# from sums


def linear_heads(rng, dtype, rows=4):
    """Numbers of queries, keys and values of a position, and what a layer's heads have."""
    given = numbers(rng, 3, rows, 1, 2, 5, dtype=dtype).transpose(2, 3)
    return given.unbind(), numbers(rng, 2, 1, 5, dtype=dtype), numbers(rng, 2, 5, 5, dtype=dtype)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_steps_of_reordered_hypotheses_equal_the_plain_steps(dtype, rng):
    _, scale, psi = linear_heads(rng, dtype)
    sums = Sums(torch.zeros(4, 2, 5, 5, dtype=dtype), torch.zeros(4, 2, 5, dtype=dtype))
    plain, order = sums, None
    for rows in (4, 4, 6, 6, 2):
        (query, key, value), _, _ = linear_heads(rng, dtype, rows)
        if len(plain.key) != rows or order is not None:
            order = torch.randint(len(plain.key), (rows,), generator=rng)
            plain = plain.reorder(order)
        query[0] = -query[0].abs()  # no positive number
        features = [plain_focus(t, scale, 2.0) for t in (query, key)]
        expected, plain = step(*features, value, plain)
        with torch.no_grad():
            out, *after = linear_step(
                (query, key, value), *sums, order, head_maps(scale, psi), least=DENOMINATOR_FLOOR
            )
        sums = Sums(*after)
        tolerance = {"rtol": 0, "atol": 20 * TOLERANCE[dtype]}
        torch.testing.assert_close(out, expected + value @ psi, **tolerance)
        for ours, other in zip(sums, plain, strict=True):
            torch.testing.assert_close(ours, other, **tolerance)
        order = order if order is not None else torch.arange(rows)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_queries_read_the_sums_of_their_rows(dtype, rng):
    query = numbers(rng, 4, 3, 2, 5, dtype=dtype).transpose(1, 2)
    _, scale, psi = linear_heads(rng, dtype)
    sums = Sums(
        numbers(rng, 6, 2, 5, 5, dtype=dtype), 1 + numbers(rng, 6, 2, 5, dtype=dtype).square()
    )
    order = torch.tensor([5, 1, 0, 1, 0, 1, 2, 1])[::2]
    with torch.no_grad():
        out = linear_read(query, *sums, order, head_maps(scale, psi), least=DENOMINATOR_FLOOR)
    expected = read(plain_focus(query, scale, 2.0), sums.reorder(order)) + query @ psi
    torch.testing.assert_close(out, expected, rtol=0, atol=20 * TOLERANCE[dtype])


@pytest.mark.parametrize("order", [None, torch.tensor([0, 1, 2])])
def test_sums_of_other_rows_than_the_queries_are_refused(order, rng):
    given, scale, psi = linear_heads(rng, torch.float32, rows=4)
    sums = Sums(torch.zeros(3, 2, 5, 5), torch.zeros(3, 2, 5))
    maps, refused = head_maps(scale, psi), "4 rows of queries need as many of sums, got 3"
    with torch.no_grad(), pytest.raises(ValueError, match=refused):
        linear_step(given, *sums, order, maps, least=DENOMINATOR_FLOOR)
    with torch.no_grad(), pytest.raises(ValueError, match=refused):
        linear_read(given[0], *sums, order, maps, least=DENOMINATOR_FLOOR)


def test_sums_of_nothing_give_what_a_position_has_of_its_own(rng):
    query = numbers(rng, 4, 2, 1, 5)
    scale, psi = numbers(rng, 2, 1, 5), numbers(rng, 2, 5, 5)
    nothing = Sums(torch.zeros(4, 2, 5, 5).double(), torch.zeros(4, 2, 5).double())
    with torch.no_grad():
        out = linear_read(query, *nothing, None, head_maps(scale, psi), least=DENOMINATOR_FLOOR)
    torch.testing.assert_close(out, query @ psi)


@pytest.mark.parametrize("kind", ["centroids", "midpoints"])
def test_a_nan_of_one_sentence_stays_there(kind, rng):
    query, keys, values, places, scale = in_table(rng, torch.float32)
    # the first place of the table is read by the first sentence alone; others have masked keys
    places.clamp_min_(1)
    places[0, 0] = 0
    places[1:, 2:4] = -1
    values[0] = torch.nan
    with torch.no_grad():
        if kind == "centroids":
            out = few_queries.centroids(query, keys, values, places, c=1.0)
        else:
            out = few_queries.midpoints(query, keys, values, places, scale)
    assert out.isfinite().flatten(1).all(1).tolist() == [False] + [True] * 6
