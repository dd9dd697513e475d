"""What the study's candidates compute; tests/models has what every architecture must do."""

import math

import torch

from hyptrans.geometry import lorentz
from recipes.study.candidates.lorentz_shell import ShellAttention, ShellNorm
from tests.geometry.helpers import points


def test_shell_moves_far_points_halfway_along_their_rays(rng):
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


def test_a_zero_state_stays_at_the_origin_with_gradients(rng):
    norm = ShellNorm(c=1.0).double()
    zero = torch.zeros(1, 8, dtype=torch.float64, requires_grad=True)
    made = norm(lorentz.lift(zero), torch.zeros(1, 8, dtype=torch.float64))
    torch.testing.assert_close(made, lorentz.lift(torch.zeros(1, 8).double()))
    made.sum().backward()
    assert torch.isfinite(zero.grad).all()


def test_heads_of_a_shell_have_one_length_and_extra_time_coordinates(rng):
    layer = ShellAttention(8, 2, c=1.0, dropout=0.0, attention_dropout=0.0, causal=False).double()
    x = points(rng, 2, 3, 9)
    query, key, value = layer.project(x)
    for made in (key, value):
        assert made.shape == (2, 2, 3, 5)
        torch.testing.assert_close(made, lorentz.lift(made[..., 1:]))
        torch.testing.assert_close(made[..., 1:].norm(dim=-1), torch.full((2, 2, 3), 5.0).double())
    scores = query @ key.transpose(-1, -2)
    distance = lorentz.squared_distance(
        lorentz.flip_time(query)[..., :, None, :] * layer.tau / 2, key[..., None, :, :]
    )
    shifted = scores + distance / layer.tau
    torch.testing.assert_close(shifted, torch.full_like(shifted, shifted.flatten()[0].item()))
