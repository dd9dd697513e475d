"""What the study's candidates compute; tests/models has what every architecture must do."""

import math

import torch

from hyptrans.geometry import lorentz
from hyptrans.layers.lorentz import LorentzEmbedding, LorentzLogits
from recipes.common import translation
from recipes.common.commands import portable
from recipes.study.candidates.lorentz_free import (
    FreeAttention,
    FreeFeedForward,
    FreeLogits,
    FreePositions,
)
from recipes.study.candidates.lorentz_shell import ShellAttention, ShellNorm
from tests.geometry.helpers import points


def test_blocks_read_points_near_a_shell_and_add_to_states_as_they_are(rng):
    x = points(rng, 5, 9)
    block = FreeFeedForward(8, 16, c=1.0, dropout=0.0).double()
    before, expand = block.expand
    with torch.no_grad():
        before.log_length.fill_(math.log(3.0))
    read = before(x)
    length = x[:, 1:].norm(dim=-1, keepdim=True)
    between = (3 * length).sqrt() / length * x[:, 1:]
    torch.testing.assert_close(read, lorentz.lift(between), atol=1e-6, rtol=1e-6)
    inner = expand(read)
    inner = 5 * inner / inner.norm(dim=-1, keepdim=True)
    added = block.contract(lorentz.lift(inner.clamp_min(0)))
    torch.testing.assert_close(block(x), lorentz.lift(x[:, 1:] + added), atol=1e-6, rtol=1e-6)


def test_maps_and_logits_of_free_states_read_them_near_a_shell_and_positions_start_short(rng):
    options = {"dropout": 0.0, "attention_dropout": 0.0, "causal": False}
    layer = FreeAttention(8, 2, c=1.0, memory_width=8, **options).double()
    x = points(rng, 2, 3, 9)
    with torch.no_grad():
        # times count for nothing at first, and heads of one length would hide what maps read
        for name in layer.before:
            getattr(layer, name).bias.fill_(0.3)
    for name, before in layer.before.items():
        for made, wanted in zip(
            layer.map_heads(name, x), ShellAttention.map_heads(layer, name, before(x)), strict=True
        ):
            torch.testing.assert_close(made, wanted)
        assert not torch.allclose(before(x), x)
    added = layer.out(lorentz.lift(x[..., 1:]))
    heads = x[..., 1:].unflatten(-1, (2, 4)).transpose(1, 2)
    merged = layer.merge(lorentz.lift(heads), x)
    torch.testing.assert_close(merged, lorentz.lift(x[..., 1:] + added))
    logits = FreeLogits(LorentzEmbedding(7, 9).double()).double()
    torch.testing.assert_close(logits(x), LorentzLogits(logits.table)(logits.before(x)))
    positions = FreePositions(8, 4, learned=True, c=1.0, dropout=0.0).double()
    places = torch.arange(3).expand(2, 3)
    moved = 0.6 * 8**0.5 * x[..., 1:] + positions.vectors(places)
    torch.testing.assert_close(positions(x, places), lorentz.lift(moved))


def test_a_shell_draws_far_points_half_of_the_way_along_their_rays(rng):
    c, shell = 0.5, 10.0
    norm = ShellNorm(c=c).double()
    with torch.no_grad():
        norm.log_length.fill_(math.log(shell))
    space = points(rng, 5, 8)[:, 1:]
    space = space / space.norm(dim=-1, keepdim=True) * torch.logspace(1.3, 3, 5).double()[:, None]
    far = lorentz.lift(space, c=c)
    drawn = norm(far, torch.zeros_like(space))
    torch.testing.assert_close(drawn, lorentz.lift(drawn[:, 1:], c=c))
    cosine = torch.cosine_similarity(drawn[:, 1:], space)
    torch.testing.assert_close(cosine, torch.ones_like(cosine))

    def radius(length):
        return math.asinh(math.sqrt(c) * length) / math.sqrt(c)

    for before, after in zip(space.norm(dim=-1), drawn[:, 1:].norm(dim=-1), strict=True):
        halfway = (radius(before.item()) + radius(shell)) / 2
        assert abs(radius(after.item()) - halfway) < 0.01


def test_a_state_without_length_stays_the_origin_and_has_gradients(rng):
    norm = ShellNorm(c=1.0).double()
    zero = torch.zeros(1, 8, dtype=torch.float64, requires_grad=True)
    made = norm(lorentz.lift(zero), torch.zeros(1, 8, dtype=torch.float64))
    torch.testing.assert_close(made, lorentz.lift(torch.zeros(1, 8).double()))
    made.sum().backward()
    assert torch.isfinite(zero.grad).all()


def test_heads_of_a_shell_have_one_length_and_their_times_beside_the_width(rng):
    layer = ShellAttention(8, 2, c=1.0, dropout=0.0, attention_dropout=0.0, causal=False).double()
    x = points(rng, 2, 3, 9)
    query, key, value = layer.project(x)
    for made in (key, value):
        assert made.shape == (2, 2, 3, 5)
        torch.testing.assert_close(made, lorentz.lift(made[..., 1:]))
        torch.testing.assert_close(made[..., 1:].norm(dim=-1), torch.full((2, 2, 3), 5.0).double())
    scores = layer.scores(query, key)
    distance = lorentz.squared_distance(
        lorentz.flip_time(query)[..., :, None, :] * layer.tau / 2, key[..., None, :, :]
    )
    shifted = scores + distance / layer.tau
    torch.testing.assert_close(shifted, torch.full_like(shifted, shifted.flatten()[0].item()))


def test_a_candidate_is_trained_with_its_own_plug_in_and_its_command_names_no_machine(tmp_path):
    for model in ("lorentz_free", "lorentz_shell", "sphere"):
        folder = translation.CANDIDATES
        own = (folder / f"{model}.py").exists()
        assert translation.plug_in(model) == (str(folder) if own else "hyptrans")
    command = portable(["fairseq-train", translation.plug_in("lorentz_free")], tmp_path)
    assert command == "fairseq-train recipes/study/candidates"
