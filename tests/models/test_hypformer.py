import pytest
import torch

from hyptrans.geometry import lorentz
from hyptrans.layers import (
    HypformerEmbedding,
    HypformerFeedForward,
    HypformerPositions,
    LinearAttention,
)
from hyptrans.layers.curvature import Curvature
from hyptrans.layers.hypformer_attention import HypformerAttention
from tests.models.conftest import SMALL, batch, build, dictionary, sample_of, small

SYMBOLS = dictionary()
BLOCKS = (HypformerEmbedding, HypformerPositions, HypformerAttention, HypformerFeedForward)


def with_own_curvatures(model, rng):
    """Give every block another curvature, as training does."""
    for module in model.modules():
        if isinstance(module, Curvature):
            torch.nn.init.uniform_(module.raw, -1.0, 2.0, generator=rng)
    return model


def logits(model, sentences):
    source, previous = batch(sentences, SYMBOLS)
    return model(source, None, previous)[0]


@pytest.mark.parametrize("attention", ["linear", "softmax"])
def test_every_block_outputs_points_of_its_curvature(attention, sentences, rng):
    model = with_own_curvatures(small("hypformer_tiny", hypformer_attention=attention).float(), rng)
    outputs = []
    for module in model.modules():
        if isinstance(module, BLOCKS):
            module.register_forward_hook(lambda m, _, out: outputs.append((m, out)))
    logits(model, sentences)
    # two embeddings, two position encodings, 2 x 2 blocks in the encoder, 2 x 3 in the decoder
    assert len(outputs) == 14
    values = [module.curvature().item() for module, _ in outputs]
    assert len(set(values)) == 14
    for module, out in outputs:
        assert lorentz.violation(out, c=module.curvature()).max() < 2e-6


def test_each_block_takes_the_curvature_of_the_one_before():
    model = build("hypformer_tiny", **SMALL)
    for side in (model.encoder, model.decoder):
        before = side.embed_tokens.curvature
        for block in _chain(side):
            assert block.passage.before is before
            if hasattr(block, "memory_passage"):
                last = model.encoder.layers[-1].feed_forward.curvature
                assert block.memory_passage.before is last
            before = block.curvature
    with torch.no_grad():
        before.raw.add_(1.0)
    assert model.decoder.logits.curvature == before() != Curvature(1.0)()


def _chain(side):
    yield side.embed_positions
    for layer in side.layers:
        yield from layer.children()


@pytest.mark.parametrize("attention", ["linear", "softmax"])
@pytest.mark.parametrize("share", [False, True])
def test_gradients_reach_every_curvature(share, attention, sentences):
    model = small("hypformer_tiny", share_all_embeddings=share, hypformer_attention=attention)
    logits(model, sentences).log_softmax(-1)[..., 4].sum().backward()
    raws = {n: p.grad for n, p in model.named_parameters() if n.endswith("curvature.raw")}
    assert len(raws) == (13 if share else 14)
    assert all(grad.abs() > 1e-8 for grad in raws.values()), raws


def test_hybonet_plus_is_hypformer_with_softmax_attention(sentences):
    plus = build("hybonet_plus_tiny", **SMALL).double().eval()
    same = build("hypformer_tiny", hypformer_attention="softmax", **SMALL).double().eval()
    same.load_state_dict(plus.state_dict())
    source, previous = batch(sentences, SYMBOLS)
    found, expected = (model(source, None, previous)[0] for model in (plus, same))
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
    linear = build("hybonet_plus_tiny", hypformer_attention="linear", **SMALL)
    assert {type(m) for m in linear.modules() if isinstance(m, HypformerAttention)} == {
        LinearAttention
    }


def test_a_fresh_deep_model_distinguishes_words_and_positions(rng):
    """Blocks that add one and the same vector everywhere would leave nothing to learn from."""
    torch.manual_seed(0)
    model = build("hypformer_iwslt_d64").eval()
    words = torch.randint(4, 24, (8, 16), generator=rng)
    memory = model.encoder(words)
    target, _ = model.decoder(words.flip(1), memory, features_only=True)
    for states in (memory["encoder_out"][0], target):
        directions = torch.nn.functional.normalize(states[..., 1:].flatten(0, 1), dim=-1)
        mean_cosine = directions.mean(0).square().sum()
        assert mean_cosine < 0.6


def test_a_training_step_computes_each_curvature_once():
    model, found = small("hybonet_plus_tiny").train(), []
    last = [part for part in model.modules() if isinstance(part, HypformerFeedForward)][-1]
    last.register_forward_hook(lambda part, *_: found.append(part.curvature()))
    last.register_forward_hook(lambda part, *_: found.append(part.curvature()))
    sample = sample_of([([5, 6], [7, 8])], SYMBOLS)["net_input"]
    model(**sample)
    one, other = found
    assert one is other
    assert last.curvature() is not last.curvature()
