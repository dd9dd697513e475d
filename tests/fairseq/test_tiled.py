from types import SimpleNamespace

import pytest
import torch
from fairseq.criterions.label_smoothed_cross_entropy import (
    LabelSmoothedCrossEntropyCriterion,
    LabelSmoothedCrossEntropyCriterionConfig,
)

from hyptrans.fairseq.model import TiledCrossEntropy
from tests.models.conftest import (
    ARCHITECTURES,
    SMALL,
    build,
    dictionary,
    sample_of,
    sentences,
    small,
)

__all__ = ["sentences"]

SYMBOLS = dictionary()


def outcome(kind, model, sample, **options):
    """Loss, what is logged, and all gradients."""
    # fairseq would round logits to float32 first
    model.get_normalized_probs = lambda output, log_probs: output[0].log_softmax(-1)
    criterion = kind(SimpleNamespace(target_dictionary=SYMBOLS), False, 0.1, **options)
    model.zero_grad()
    loss, size, logged = criterion(model, sample)
    loss.backward()
    gradients = {n: p.grad for n, p in model.named_parameters() if p.grad is not None}
    return loss.item(), size, logged["nll_loss"].item(), gradients


# distances to tokens are no product of states and a table
PRODUCTS = [arch for arch in ARCHITECTURES if arch != "geodesic_logits_tiny"]


WAYS = [(arch, {}) for arch in (*PRODUCTS, "transformer_tiny")]
WAYS += [("hybonet_tiny", {"ignore_prefix_size": 1})]


@pytest.mark.parametrize(("arch", "options"), WAYS)
def test_loss_and_gradients_match_fairseqs_criterion(arch, options, sentences):
    model = small(arch) if arch in ARCHITECTURES else build(arch, **SMALL).double().eval()
    sample = sample_of(sentences, SYMBOLS)
    ours = outcome(TiledCrossEntropy, model, sample, **options)
    fairseqs = outcome(LabelSmoothedCrossEntropyCriterion, model, sample, **options)
    assert ours[:3] == (*(pytest.approx(value, rel=1e-12) for value in fairseqs[:3]),)
    assert ours[3].keys() == fairseqs[3].keys()
    for name, gradient in ours[3].items():
        torch.testing.assert_close(gradient, fairseqs[3][name], rtol=0, atol=1e-10)


def test_tiled_loss_refuses_to_report_accuracy():
    cfg = LabelSmoothedCrossEntropyCriterionConfig(report_accuracy=True)
    with pytest.raises(ValueError, match="--report-accuracy needs all logits"):
        TiledCrossEntropy.build_criterion(cfg, SimpleNamespace(target_dictionary=SYMBOLS))


@pytest.mark.parametrize("arch", ["transformer_tiny", "lstm"])
def test_tiled_loss_refuses_models_without_a_single_product(arch, sentences):
    options = {**SMALL, "adaptive_softmax_cutoff": "8,12"} if arch != "lstm" else {"criterion": ""}
    model = build(arch, **options)
    with pytest.raises(ValueError, match="needs a model whose logits are one product"):
        outcome(TiledCrossEntropy, model, sample_of(sentences, SYMBOLS))
