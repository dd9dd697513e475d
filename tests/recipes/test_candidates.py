"""What the study's candidates compute; tests/models has what every architecture must do."""

import math
from argparse import Namespace
from types import SimpleNamespace

import pytest
import torch
from fairseq.data import Dictionary
from torch.nn import functional as F

from hyptrans.geometry import lorentz
from hyptrans.layers.han import HyperbolicAttention
from hyptrans.layers.hypformer import Curvature
from hyptrans.layers.hypformer_attention import SoftmaxAttention
from hyptrans.layers.lorentz.embedding import LorentzEmbedding
from hyptrans.models.hybonet import HyboNetConfig
from hyptrans.models.hypformer import HTC_GAIN
from hyptrans.seq2seq.parts import Role
from recipes.study import plan
from recipes.study import run as study
from recipes.study.candidates.deepnorm import DeepNormTransformer, deepnorm_iwslt_d64
from recipes.study.candidates.geodesic_attention import GeodesicAttention
from recipes.study.candidates.geodesic_logits import GeodesicLogits
from recipes.study.candidates.han_prenorm import PreNormAttention, PreNormLogits, StreamSum
from recipes.study.candidates.hypformer_small_updates import UPDATE
from recipes.study.candidates.lorentz_prenorm import PointNorm, PreNormFeedForward
from recipes.study.candidates.one_time import INNER_LOG_SCALE, OneTimeAttention
from recipes.study.candidates.one_time_flat import FlatLogits
from recipes.study.candidates.one_time_mean import MeanAttention
from recipes.study.candidates.one_time_sphere import OneTimeSphereParts
from recipes.study.candidates.one_time_unread import UnreadAttention
from recipes.study.candidates.sphere_han import SphereHANAttention
from tests.geometry.helpers import points


def test_logits_are_geodesic_distances(rng):
    layer = GeodesicLogits(LorentzEmbedding(11, 6, c=0.5)).double()
    with torch.no_grad():
        layer.bias.normal_(generator=rng)
    x = points(rng, 4, 6, c=0.5)
    found = lorentz.distance(x[:, None], layer.table.points(), c=0.5)
    torch.testing.assert_close(layer(x), layer.bias - 8 * found, atol=1e-6, rtol=1e-6)


def test_logits_of_space_coordinates_are_dot_products(rng):
    layer = FlatLogits(LorentzEmbedding(11, 6, c=0.5)).double()
    with torch.no_grad():
        layer.bias.normal_(generator=rng)
    x = points(rng, 4, 6, c=0.5)
    wanted = 2 * x[:, 1:] @ layer.table.points()[:, 1:].t() + layer.bias
    torch.testing.assert_close(layer(x), wanted)


@pytest.mark.parametrize("is_causal", [False, True])
def test_attention_weighs_by_geodesic_distances(is_causal, rng):
    layer = GeodesicAttention(8, 2, c=0.5, causal=is_causal).double()
    query, key, value = (points(rng, 1, 2, 5, 4, c=0.5) for _ in range(3))
    scores = -2 * lorentz.distance(query[:, :, :, None], key[:, :, None], c=0.5)
    if is_causal:
        scores = scores.masked_fill(~torch.ones(5, 5, dtype=torch.bool).tril(), -torch.inf)
    wanted = lorentz.centroid(value, scores.softmax(-1), c=0.5)
    made = layer.mix(lorentz.flip_time(query), key, value, allowed=None, is_causal=is_causal)
    torch.testing.assert_close(made, wanted, atol=1e-6, rtol=1e-6)


def test_blocks_read_points_of_one_size_and_add_to_the_stream(rng):
    x = points(rng, 5, 8)
    block = PreNormFeedForward(8, 16, c=1.0, dropout=0.0).double()
    read = block.norm(x)
    torch.testing.assert_close(
        read[:, 1:].square().mean(-1), torch.ones(5).double(), atol=1e-4, rtol=0
    )
    scaled = lorentz.lift(7 * x[:, 1:])
    torch.testing.assert_close(PointNorm(8, c=1.0).double()(scaled), read, atol=1e-4, rtol=0)
    inner = block.expand(read).clamp_min(0)
    added = inner @ block.contract.weight.t() + block.contract.bias
    torch.testing.assert_close(block(x), lorentz.lift(x[:, 1:] + added[:, 1:]))


def test_hyperbolic_attention_reads_normalized_states_and_adds_to_the_stream(rng):
    layer = PreNormAttention(8, 2, memory_width=6).double()
    x, memory = (torch.randn(2, 5, n, generator=rng, dtype=torch.float64) for n in (8, 6))
    added = layer(x, memory) - x
    torch.testing.assert_close(
        layer(3 * x + 1, 5 * memory - 2) - (3 * x + 1), added, atol=1e-4, rtol=0
    )
    # post-norm HAN of the same states
    whole = HyperbolicAttention(8, 2, memory_width=6).double()
    whole.load_state_dict(layer.state_dict(), strict=False)
    whole.residual = StreamSum(0.0)
    read = [F.layer_norm(part, part.shape[-1:]) for part in (x, memory)]
    torch.testing.assert_close(whole(*read) - read[0], added)
    logits = PreNormLogits(11, 8).double()
    torch.testing.assert_close(logits(4 * x), logits(x), atol=1e-4, rtol=0)


def test_all_points_of_a_layer_have_one_time_and_go_on_having_it(rng):
    layer = OneTimeAttention(8, 2).double()
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.1)
    x = points(rng, 2, 5, 8)
    for _ in range(3):
        made = [*layer.qkv.heads(x), layer(x)]
        times = [part[..., 0].detach() for part in made]
        assert all(float(time.std()) < 1e-6 for time in times)
        optimizer.zero_grad()
        made[-1].square().sum().backward()
        optimizer.step()
    assert layer.qkv.log_scale.detach().tolist() != [INNER_LOG_SCALE] * 3


@pytest.mark.parametrize("is_causal", [False, True])
def test_values_give_the_point_above_the_mean_of_their_space_coordinates(is_causal, rng):
    layer = MeanAttention(8, 2, c=0.5, causal=is_causal).double()
    query, key, value = (points(rng, 2, 2, 5, 4, c=0.5) for _ in range(3))
    padding = torch.zeros(2, 1, 1, 5, dtype=torch.bool)
    padding[1, ..., 0 if is_causal else -1] = True
    scores = lorentz.inner(query[:, :, :, None], key[:, :, None])
    hidden = padding | (~torch.ones(5, 5, dtype=torch.bool).tril() if is_causal else False)
    # a first query that sees nothing is no row of a real batch
    rows = slice(1, None) if is_causal else slice(None)
    weights = scores.masked_fill(hidden, -torch.inf).softmax(-1)[:, :, rows]
    wanted = lorentz.lift(weights @ value[..., 1:], c=0.5)
    flipped = lorentz.flip_time(query)
    made = layer.mix(flipped, key, value, allowed=~padding, is_causal=is_causal)
    torch.testing.assert_close(made[:, :, rows], wanted)


def test_times_are_not_read_and_stay_so(rng):
    layer = UnreadAttention(8, 2).double()
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.1)
    x = points(rng, 2, 5, 8)
    layer(x)[..., 1].sum().backward()
    optimizer.step()
    assert layer.qkv.weight.detach()[:, 1:].abs().max() > 0.05
    other = torch.cat([7 * x[..., :1], x[..., 1:]], dim=-1)
    torch.testing.assert_close(layer.qkv.heads(other), layer.qkv.heads(x), rtol=0, atol=0)
    assert layer.out.weight.detach()[:, ::4].abs().max() == 0


def test_a_candidate_is_trained_with_its_own_plug_in_and_its_command_names_no_machine(tmp_path):
    for model in plan.CANDIDATES:
        folder = study.HERE / "candidates"
        own = (folder / f"{model}.py").exists()
        assert study._user_dir(model) == (str(folder) if own else "hyptrans")
    step = study.Step("a", ["fairseq-train", "--user-dir", study._user_dir("lorentz_prenorm")], [])
    assert study.portable_command(step, tmp_path) == (
        "fairseq-train --user-dir recipes/study/candidates"
    )


def test_hyperbolic_attention_of_states_on_a_sphere_is_that_of_han(rng):
    layer = SphereHANAttention(8, 2).double()
    x = torch.randn(2, 5, 8, generator=rng, dtype=torch.float64)
    plain = HyperbolicAttention(8, 2).double()
    plain.load_state_dict(layer.state_dict(), strict=False)
    heads = plain.mix(*plain.project(x), allowed=None, is_causal=False)
    update = heads.transpose(1, 2).flatten(2) @ layer.out.weight.t() + layer.out.bias
    # the log of the radius starts at 2.3
    wanted = math.exp(2.3) * F.normalize(x + update, dim=-1)
    torch.testing.assert_close(layer(x, None), wanted, atol=1e-5, rtol=1e-5)


def test_deepnorm_weighs_what_goes_past_a_block():
    torch.manual_seed(0)
    sizes = {"layers": 2, "embed_dim": 64, "ffn_embed_dim": 96, "attention_heads": 2}
    sides = ("encoder", "decoder")
    args = Namespace(**{f"{side}_{name}": n for side in sides for name, n in sizes.items()})
    deepnorm_iwslt_d64(args)
    task = SimpleNamespace(source_dictionary=Dictionary(), target_dictionary=Dictionary())
    model = DeepNormTransformer.build_model(args, task).double().eval()
    # after this fairseq would hand the layer to torch
    model.load_state_dict(model.state_dict())
    layer, x = model.encoder.layers[0], torch.randn(5, 3, 64, dtype=torch.float64)
    weight = 0.81 * 2 ** (5 / 16)
    inner = layer.self_attn_layer_norm(weight * x + layer.self_attn(x, x, x)[0])
    update = layer.fc2(F.relu(layer.fc1(inner)))
    wanted = layer.final_layer_norm(weight * inner + update)
    torch.testing.assert_close(layer(x, None), wanted)
    # of Xavier's normal distribution
    of_64_and_96, small = math.sqrt(2 / (64 + 96)), 24 ** (-1 / 4)
    assert float(layer.fc1.weight.detach().std()) == pytest.approx(
        0.87 * 2 ** (-5 / 16) * of_64_and_96, rel=0.05
    )
    other = model.decoder.layers[1]
    assert float(other.fc2.weight.detach().std()) == pytest.approx(small * of_64_and_96, rel=0.05)
    assert float(other.encoder_attn.q_proj.weight.detach().std()) == pytest.approx(1 / 8, rel=0.05)
    assert float(other.encoder_attn.v_proj.weight.detach().std()) == pytest.approx(
        small / 8, rel=0.05
    )
    assert other.residual_connection(torch.ones(1), torch.ones(1)).item() == pytest.approx(
        1 + 6 ** (1 / 4)
    )


def test_nothing_of_the_times_is_left_where_all_are_one(rng):
    torch.manual_seed(0)
    side = SimpleNamespace(
        width=8, heads=2, layers=1, ffn_width=16, max_positions=5, learned_positions=True
    )
    parts = OneTimeSphereParts(HyboNetConfig(dropout=0.0), side)
    table = parts.embedding(11, 0)
    x = table(torch.randint(1, 11, (2, 4)))
    positions = parts.positions(before=table)
    placed = positions(x, torch.arange(4).expand(2, 4))
    block = parts.attention(Role(), before=None)
    for made in (placed, block(placed), parts.feed_forward(before=None)(placed)):
        torch.testing.assert_close(made[..., 0], made[0, 0, 0].expand(2, 4), atol=0, rtol=1e-3)
    moved = torch.cat([placed[..., :1] + 1, placed[..., 1:]], dim=-1)
    torch.testing.assert_close(block(moved), block(placed))
    logits = parts.logits(11, 0, tied=None, before=None)
    torch.testing.assert_close(logits(moved), logits(placed))
    (block(placed)[..., 1:].sum() + logits(placed).square().sum()).backward()
    for layer in (positions.linear, block.qkv):
        assert layer.weight.grad[1:, 1:].any()
        assert not layer.weight.grad[:, 0].any()


def test_small_updates_are_those_of_curved_space_before_training(rng):
    torch.manual_seed(0)
    options = {"gain": HTC_GAIN, "input_curvature": Curvature(1.0, learned=False)}
    curved = SoftmaxAttention(64, 4, curvature=Curvature(1.0, learned=False), **options)
    x = lorentz.lift(torch.randn(2, 200, 63, generator=rng))
    query, key, value = curved.project(x)
    mixed = curved.mix(query, key, value, allowed=None, is_causal=False)[..., 1:]
    mean = curved.weights(query, key, None) @ value[..., 1:]
    found = (mixed.norm(dim=-1) / mean.norm(dim=-1)).mean()
    assert found.item() == pytest.approx(UPDATE, rel=0.15)
