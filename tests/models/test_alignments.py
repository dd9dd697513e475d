"""Attention to the source: what a decoder looks at is what it mixes, and fairseq prints it."""

import pytest
import torch

from hyptrans.geometry import klein, lorentz, poincare
from hyptrans.layers.euclidean import DotProductAttention
from hyptrans.layers.han import HyperbolicAttention
from hyptrans.layers.hvt_attention import PoincareAttention
from hyptrans.layers.hybonet import LorentzAttention
from hyptrans.layers.hypformer_attention import LinearAttention, SoftmaxAttention
from hyptrans.layers.sphere import SphereAttention
from hyptrans.seq2seq.stacks import Decoder
from recipes.study.candidates.lorentz_shell import ShellAttention
from tests.models.conftest import ARCHITECTURES, batch, dictionary, small, task_of

# what an attention makes of weights, values and queries
MIXED = {
    LorentzAttention: lambda layer, w, v, q: lorentz.centroid(v, w, c=layer.c),
    # hands on the space part alone
    SoftmaxAttention: lambda layer, w, v, q: lorentz.centroid(v, w, c=layer.curvature())[..., 1:],
    LinearAttention: lambda layer, w, v, q: w @ v + q @ layer.psi,
    HyperbolicAttention: lambda layer, w, v, q: klein.midpoint_of_sum(w @ v),
    PoincareAttention: lambda layer, w, v, q: poincare.centroid_tangent(w @ v, c=layer.c),
    DotProductAttention: lambda layer, w, v, q: w @ v,
    SphereAttention: lambda layer, w, v, q: w @ v,
    ShellAttention: lambda layer, w, v, q: lorentz.centroid(v, w, c=layer.c),
}
PAIRS = [([5, 6], [5, 6, 9]), ([7, 8, 9], [9, 8, 7])]
WAYS = [(arch, {}) for arch in ARCHITECTURES]
WAYS += [("hypformer_tiny", {"hypformer_attention": "softmax"})]


@pytest.mark.parametrize(("arch", "options"), WAYS)
def test_reported_attention_weights_mix_the_values(arch, options):
    words = dictionary()
    model = small(arch, task_of(words), **options)
    source, previous = batch(PAIRS, words)
    layer, seen = model.decoder.layers[-1].cross_attention, []
    layer.register_forward_pre_hook(lambda layer, given: seen.append(given))
    assert model(source, None, previous)[1]["attn"] == [None]
    ((x, memory),) = seen

    allowed = source.ne(words.pad())[:, None, None, :]
    query, (key, value) = layer.query(x), layer.keys_and_values(memory)
    weights = layer.weights(query, key, allowed, is_causal=False)
    kind = next(kind for kind in MIXED if isinstance(layer, kind))
    torch.testing.assert_close(
        MIXED[kind](layer, weights, value, query),
        layer.recall(query, layer.remember(memory, allowed), allowed),
    )
    model.make_generation_fast_(need_attn="hard")
    attention = model(source, None, previous)[1]["attn"][0]
    torch.testing.assert_close(attention, weights.mean(1))


@pytest.mark.parametrize(("arch", "options"), WAYS)
def test_attention_weights_of_every_layer_mix_its_inputs(arch, options):
    words = dictionary()
    model = small(arch, task_of(words), **options).eval()
    source, previous = batch(PAIRS, words)
    seen = []
    for side in (model.encoder, model.decoder):
        for layer in side.layers:
            layer.attention.register_forward_pre_hook(lambda one, given: seen.append((one, *given)))
    with torch.no_grad():
        memory, padding = model.encoder.memory(source)
        Decoder.forward(model.decoder, previous, memory, padding)
        given, seen = seen, []
        _, found = model.encoder.attentions(source)
        _, own, cross = model.decoder.attentions(previous, memory, padding)
        for (layer, x), weights in zip(given, [*found, *own], strict=True):
            query, key, value = layer.project(x)
            allowed = None if layer.causal else ~padding[:, None, None]
            kind = next(kind for kind in MIXED if isinstance(layer, kind))
            wanted = layer.mix(query, key, value, allowed=allowed, is_causal=layer.causal)
            # linear attention adds to itself what its own values are mapped to
            torch.testing.assert_close(MIXED[kind](layer, weights, value, value), wanted)
    for weights in (*found, *own, *cross):
        torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights[..., 0]))
    assert not any(weights.triu(1).any() for weights in own)
    assert not any(weights[0, ..., 0].any() for weights in (*found, *cross))  # padding
