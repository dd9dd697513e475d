"""Cross entropy in tiles has the value and the gradients of fairseq's, whatever the tile."""

import pytest
import torch
from fairseq.criterions.label_smoothed_cross_entropy import label_smoothed_nll_loss

from hyptrans.kernels import products
from hyptrans.kernels.products import label_smoothed_cross_entropy

TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5}


def inputs(rng, rows=150, width=7, size=61, dtype=torch.float64, spread=3.0):
    features = spread * torch.randn(rows, width, generator=rng, dtype=torch.float64)
    table = torch.randn(size, width, generator=rng, dtype=torch.float64)
    targets = torch.randint(size, (rows,), generator=rng)
    return features.to(dtype).requires_grad_(), table.to(dtype).requires_grad_(), targets


def fairseqs(features, table, targets, smoothing):
    log_probabilities = (features @ table.t()).log_softmax(-1)
    return label_smoothed_nll_loss(log_probabilities, targets, smoothing, ignore_index=-1)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.9])
@pytest.mark.parametrize("tile", [1, 64, 1000])
def test_losses_and_gradients_match_fairseq(tile, smoothing, dtype, rng, monkeypatch):
    monkeypatch.setattr(products, "rows_of_tile", lambda *_: tile)
    features, table, targets = inputs(rng, dtype=dtype)
    expected, expected_nll = fairseqs(features, table, targets, smoothing)
    loss, nll = label_smoothed_cross_entropy(features, table, targets, smoothing=smoothing)
    close = {"rtol": TOLERANCE[dtype], "atol": TOLERANCE[dtype]}
    torch.testing.assert_close(loss, expected, **close)
    torch.testing.assert_close(nll, expected_nll, **close)
    ours = torch.autograd.grad(3 * loss, [features, table])
    for got, wanted in zip(ours, torch.autograd.grad(3 * expected, [features, table]), strict=True):
        assert (got - wanted).abs().max() <= 4 * TOLERANCE[dtype] * wanted.abs().max()


def test_gradients_agree_with_finite_differences(rng):
    features, table, targets = inputs(rng, rows=5, width=3, size=6)
    assert torch.autograd.gradcheck(
        lambda f, t: label_smoothed_cross_entropy(f, t, targets, smoothing=0.2)[0],
        (features, table),
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_is_close_and_scaled_gradients_do_not_vanish(dtype, rng):
    features, table, targets = inputs(rng, dtype=torch.float32, spread=0.5)
    expected, _ = fairseqs(features, table, targets, 0.1)
    (wanted,) = torch.autograd.grad(expected, features)
    half = features.detach().to(dtype).requires_grad_()
    loss, _ = label_smoothed_cross_entropy(half, table.detach().to(dtype), targets, smoothing=0.1)
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(expected.item(), rel=1e-2)
    # a mean over many tokens, with the factor that keeps half precision's gradients from vanishing
    (got,) = torch.autograd.grad(loss * 1e-6 * 2.0**14, half)
    assert (got.float() / (1e-6 * 2.0**14) - wanted).abs().mean() < 0.03 * wanted.abs().mean()


@pytest.mark.parametrize("by_tensor_cores", [True, False])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_float16_keeps_small_gradients_of_many_types(smoothing, by_tensor_cores, rng, monkeypatch):
    # as on a GPU: factors of half precision, products added up in float32
    monkeypatch.setattr(products, "_by_tensor_cores", lambda _: by_tensor_cores)
    monkeypatch.setattr(products, "_product_of_halves", lambda a, b: a.float() @ b.float())
    size = 50_000
    features = torch.cat([torch.ones(1, 1), torch.randn(1, 7, generator=rng)], dim=1).half()
    # probabilities from 1 down to 1e-13
    table = torch.linspace(0, 30, size)[:, None] * torch.eye(1, 8) + 1e-3
    table, targets = table.half(), torch.tensor([7])
    logits = products.linear(features, table).double().requires_grad_()
    expected, _ = label_smoothed_nll_loss(logits.log_softmax(-1), targets, smoothing, -1)
    (wanted,) = torch.autograd.grad(expected, logits)
    given = [features.requires_grad_(), table.requires_grad_()]
    loss, _ = label_smoothed_cross_entropy(*given, targets, smoothing=smoothing)
    of_features, of_table = loss.grad_fn.saved_tensors
    # the first feature is 1, so the table's gradient there is that of the logits
    off = (of_table[:, 0] - wanted[0]).abs() / wanted[0].abs()
    counted = wanted[0].abs() > 1e-9
    assert counted.sum() > size // 3
    assert off[counted].max() <= 1e-3
    torch.testing.assert_close(
        of_features.double(), wanted @ table.detach().double(), rtol=1e-3, atol=1e-6
    )
    scaled = torch.autograd.grad(128 * loss, given)[1][:, 0].double() / 128
    assert ((scaled - wanted[0]).abs() <= 1.5e-3 * wanted[0].abs() + 3e-8 / 128).all()


@pytest.mark.parametrize("error", [RuntimeError, TypeError, None])
def test_half_precision_products_are_tried_before_use(error, monkeypatch):
    def product(a, b):
        if error:
            raise error
        return a.float() @ b.float()

    monkeypatch.setattr(products, "_product_of_halves", product)
    products._make_float32.cache_clear()
    assert products._make_float32(torch.float16, torch.device("cpu")) == (error is None)
    products._make_float32.cache_clear()


def test_logits_far_apart_give_finite_losses_and_gradients(rng):
    features, table, targets = inputs(rng, dtype=torch.float32, spread=1e4)
    loss, _ = label_smoothed_cross_entropy(features, table, targets, smoothing=0.1)
    assert torch.isfinite(loss)
    gradients = torch.autograd.grad(loss, [features, table])
    assert all(torch.isfinite(gradient).all() for gradient in gradients)


def test_nan_logits_give_a_nan_loss(rng):
    features, table, targets = inputs(rng, dtype=torch.float32)
    with torch.no_grad():
        features[3, 2] = torch.nan
    assert label_smoothed_cross_entropy(features, table, targets, smoothing=0.1)[0].isnan()


@pytest.mark.parametrize("enabled", [True, False])
def test_loss_computes_only_required_gradients(enabled, rng, monkeypatch):
    features, table, targets = inputs(rng)
    computed = []

    def losses(logits, targets, of_target, of_all, gradient):
        computed.append(gradient)
        return logits.new_zeros(len(logits), 2)

    monkeypatch.setattr(products, "losses_", losses)
    with torch.set_grad_enabled(enabled):
        label_smoothed_cross_entropy(features, table, targets, smoothing=0.1)
    assert computed == [enabled]


def test_loss_of_no_rows_is_zero(rng):
    features, table, targets = inputs(rng, rows=0)
    loss, nll = label_smoothed_cross_entropy(features, table, targets, smoothing=0.1)
    assert (loss.item(), nll.item()) == (0, 0)
    assert not torch.autograd.grad(loss, table)[0].any()


@pytest.mark.parametrize(
    ("smoothing", "target", "message"),
    [
        (1.0, 0, "label smoothing must be at least 0 and below 1, got 1.0"),
        (0.1, 61, "targets must be from 0 to 60, got 61"),
        (0.1, -1, "targets must be from 0 to 60, got -1"),
    ],
)
def test_values_out_of_range_are_refused(smoothing, target, message, rng):
    features, table, targets = inputs(rng)
    targets[5] = target
    with pytest.raises(ValueError, match=message):
        label_smoothed_cross_entropy(features, table, targets, smoothing=smoothing)


def test_a_second_derivative_is_refused(rng):
    features, table, targets = inputs(rng)
    loss, _ = label_smoothed_cross_entropy(features, table, targets, smoothing=0.1)
    with pytest.raises(RuntimeError, match="label_smoothed_cross_entropy without tiles"):
        torch.autograd.grad(loss, features, create_graph=True)
