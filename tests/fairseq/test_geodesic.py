"""The criterion with geodesic regularization against fairseq's own and its formula."""

from types import SimpleNamespace

import pytest
import torch
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion

from hyptrans.fairseq.geodesic import GeodesicCriterion, geodesic_term
from hyptrans.geometry import poincare
from tests.geometry.helpers import ball
from tests.models.conftest import SMALL, build, dictionary, sample_of, task_of

SYMBOLS = dictionary()


def model_of(arch, **options):
    torch.manual_seed(0)
    return build(arch, task_of(SYMBOLS), dropout=0.0, **SMALL, **options).double()


@pytest.fixture
def sample():
    return sample_of([([5, 6, 7], [8, 9, 8]), ([10, 11], [12, 13, 14, 9, 8])], SYMBOLS)


def criterion_of(weight, sentence_avg=False):
    task = SimpleNamespace(target_dictionary=SYMBOLS)
    return GeodesicCriterion(task, sentence_avg, 0.1, geodesic_regularization=weight)


def of_fairseq(model, sample):
    task = SimpleNamespace(target_dictionary=SYMBOLS)
    return LabelSmoothedCrossEntropyCriterion(task, False, 0.1)(model, sample)[0]


@pytest.mark.parametrize("arch", ["hvt_tiny", "hybonet_tiny"])
def test_criterion_without_a_weight_equals_fairseqs(arch, sample):
    model = model_of(arch).train()
    expected = of_fairseq(model, sample)
    got, size, logged = criterion_of(0.0)(model, sample)
    assert torch.equal(got, expected)
    assert size == sample["ntokens"]
    assert logged["loss"] == expected


@pytest.mark.parametrize("sentence_avg", [False, True])
@pytest.mark.parametrize("reduce", [False, True])
def test_regularizer_is_added_once_per_unit_of_sample_size(reduce, sentence_avg, sample):
    model = model_of("hvt_tiny").train()
    losses = []
    for weight in (0.0, 0.5, 1.0):
        torch.manual_seed(0)
        criterion = criterion_of(weight, sentence_avg=sentence_avg)
        loss, size, _ = criterion(model, sample, reduce=reduce)
        losses.append(loss.double().sum() / size)
    torch.manual_seed(0)
    points = model(**sample["net_input"], features_only=True)[0]
    real = sample["target"] != SYMBOLS.pad()
    term = geodesic_term(points[real], sample["target"][real], c=1.0)
    assert 0 < term < 1
    # fairseq takes its log-probabilities in float32
    close = {"rtol": 1e-4, "atol": 1e-6}
    torch.testing.assert_close(losses[1] - losses[0], 0.5 * term, **close)
    torch.testing.assert_close(losses[2] - losses[0], term, **close)


def test_validation_losses_exclude_the_regularizer(sample):
    model = model_of("hvt_tiny").eval()
    assert torch.equal(criterion_of(1.0)(model, sample)[0], of_fairseq(model, sample))


@pytest.mark.parametrize("c", [0.25, 1.0, 4.0])
def test_regularizer_is_the_mean_over_pairs_of_different_tokens(c, rng):
    # two places: pairs at one place are not counted if, and only if, their tokens are equal
    places = ball(rng, 2, 4, c=c)
    expected = torch.exp(-poincare.distance(places[0], places[1], c=c))
    tokens = torch.tensor([4, 5, 4, 5, 5])
    torch.testing.assert_close(geodesic_term(places[tokens - 4], tokens, c=c), expected)
    assert geodesic_term(places[tokens - 4], torch.full((5,), 4), c=c) == 0
    assert geodesic_term(places[:0], tokens[:0], c=c) == 0
    assert geodesic_term(places[[0, 0]], torch.tensor([4, 5]), c=c) == 1


def test_equal_points_of_different_tokens_have_a_finite_gradient():
    points = torch.zeros(4, 3, requires_grad=True)
    geodesic_term(points, torch.tensor([4, 5, 6, 7]), c=1.0).backward()
    assert torch.isfinite(points.grad).all()


def test_impossible_weights_and_architectures_are_refused(sample):
    with pytest.raises(ValueError, match=r"--geodesic-regularization needs .* use --arch hvt_"):
        criterion_of(1.0)(model_of("hybonet_tiny").train(), sample)
    for weight in (-1, float("inf"), float("nan")):
        wanted = f"--geodesic-regularization must be at least 0 and finite, got {weight}"
        with pytest.raises(ValueError, match=wanted):
            criterion_of(weight)


def test_the_mean_of_half_precision_is_taken_in_float32(rng):
    points = (torch.randn(50, 4, generator=rng) / 8).bfloat16()
    tokens = torch.arange(50)
    torch.manual_seed(0)
    found = geodesic_term(points, tokens, c=1.0)
    torch.manual_seed(0)
    assert found.dtype == torch.float32
    assert torch.equal(found, geodesic_term(points.float(), tokens, c=1.0))
