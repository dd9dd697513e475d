"""Forms that can use the space: maps and logits from distances to hyperplanes, and horospheres."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import register_parametrization

from hyptrans.geometry import lorentz
from hyptrans.geometry.precision import at_least_float32
from hyptrans.kernels import products
from hyptrans.kernels.dropout import relu_dropout
from hyptrans.layers.attention import State
from hyptrans.layers.hybonet import LorentzLinear
from hyptrans.layers.hypformer import HTC, HypformerLogits
from hyptrans.models.hybonet import HyboNetConfig, HyboNetParts
from hyptrans.models.hybonet_plus import HyboNetPlusConfig, HyboNetPlusParts
from hyptrans.seq2seq.architectures import register_sizes

LEAST_LENGTH = 1e-6
"""Least length of a hyperplane's normal."""


class Hyperplanes(nn.Module):
    """Vectors ``V = [-|u| sinh(a / |u|); cosh(a / |u|) u]`` from offsets ``a`` and normals ``u``.

    The product of a point with ``V`` is ``|u| sinh(d)``, with ``d`` the signed distance to the
    hyperplane at ``a / |u|`` along ``u``, at curvature -1.

    Shapes: ``[..., 1 + space]`` -> the same. Source: van der Klis et al., arXiv 2601.21529.
    """

    def __init__(self, points: int = 1) -> None:
        super().__init__()
        self.points = points

    def forward(self, stored: Tensor) -> Tensor:
        own = stored.unflatten(-1, (self.points, -1))
        offset, normal = own[..., :1], own[..., 1:]
        length = normal.norm(dim=-1, keepdim=True).clamp_min(LEAST_LENGTH)
        b = offset / length
        return torch.cat([-length * b.sinh(), b.cosh() * normal], dim=-1).flatten(-2)


def by_hyperplanes(part: Any) -> Any:
    """Let the HTC maps of a part have such weights, and no bias."""
    for module in part.modules():
        if isinstance(module, HTC):
            register_parametrization(module, "weight", Hyperplanes())
            module.bias.requires_grad_(False)
    return part


@dataclass
class PlusConfig(HyboNetPlusConfig):
    """Options of ``hybonet_plus``."""


@register_sizes("plus_fgg", PlusConfig, ("tiny", "iwslt_d64"))
class PlusFGGParts(HyboNetPlusParts):
    """``hybonet_plus`` whose maps are distances to hyperplanes."""

    def positions(self, *, before: Any) -> Any:
        return by_hyperplanes(super().positions(before=before))

    def attention(self, role: Any, *, before: Any) -> Any:
        return by_hyperplanes(super().attention(role, before=before))

    def feed_forward(self, *, before: Any) -> Any:
        return by_hyperplanes(super().feed_forward(before=before))


class LinearByHyperplanes(LorentzLinear):
    """HyboNet's linear layer whose space part is that of the map, without a bound of the time."""

    def forward(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        x = relu_dropout(x, self.dropout, relu=self.relu, training=self.training)
        weight = self.weight
        z = at_least_float32(products.linear(x.to(weight.dtype), weight, None))
        z = z.view(*z.shape[:-1], *self.shape)[..., 1:]
        if residual is not None:
            return lorentz.lift(z.flatten(-3) + residual[..., 1:], c=self.c)
        made = lorentz.lift(z, c=self.c)
        return made.flatten(-3) if self.split_heads is None else made


def linear_by_hyperplanes(part: Any) -> Any:
    """Let the linear layers of a part be such layers."""
    for module in part.modules():
        if type(module) is LorentzLinear:
            points = module.merged_heads
            module.__class__ = LinearByHyperplanes
            register_parametrization(module, "weight", Hyperplanes(points))
            module.bias.requires_grad_(False)
            module.log_scale.requires_grad_(False)
    return part


@dataclass
class FGGConfig(HyboNetConfig):
    """Options of HyboNet."""


@register_sizes("hybonet_fgg", FGGConfig, ("tiny", "iwslt_d64"))
class HyboNetFGGParts(HyboNetParts):
    """HyboNet whose linear layers are distances to hyperplanes."""

    def positions(self, *, before: Any) -> Any:
        return linear_by_hyperplanes(super().positions(before=before))

    def attention(self, role: Any, *, before: Any) -> Any:
        return linear_by_hyperplanes(super().attention(role, before=before))

    def feed_forward(self, *, before: Any) -> Any:
        return linear_by_hyperplanes(super().feed_forward(before=before))


class HyperplaneLogits(HypformerLogits):
    """Signed distances to a hyperplane per token, times a learned gain, plus a bias.

    The table's rows are the normals.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.offsets = nn.Parameter(torch.zeros_like(self.bias))
        self.log_gain = nn.Parameter(torch.zeros(()))
        self.planes = Hyperplanes()

    def forward(self, x: Tensor, state: State | None = None) -> Tensor:
        x = at_least_float32(x)
        vectors = self.planes(torch.cat([self.offsets[:, None], self.table.weight], dim=-1))
        # V holds minus the time, so an ordinary product is Lorentzian
        return self.log_gain.exp() * torch.asinh(x @ vectors.t()) + self.bias


@register_sizes("plus_planes", PlusConfig, ("tiny", "iwslt_d64"))
class PlusPlanesParts(HyboNetPlusParts):
    """``hybonet_plus`` with logits from distances to hyperplanes."""

    def logits(self, num_embeddings: int, padding_idx: int, *, tied: Any, before: Any) -> Any:
        table = tied or self.embedding(num_embeddings, padding_idx)
        return HyperplaneLogits(table, input_curvature=before.curvature)


class BusemannLogits(HypformerLogits):
    """``-|u| log(x_t - <x_s, u / |u|>) + bias``: Busemann functions of ideal points ``u / |u|``.

    Source: arXiv 2602.18858. The table's rows are ``u``.
    """

    def forward(self, x: Tensor, state: State | None = None) -> Tensor:
        x, u = at_least_float32(x), at_least_float32(self.table.weight)
        length = u.norm(dim=-1).clamp_min(LEAST_LENGTH)
        gap = x[..., :1] - x[..., 1:] @ (u / length[:, None]).t()
        return self.bias - length * gap.clamp_min(LEAST_LENGTH).log()


@register_sizes("plus_busemann", PlusConfig, ("tiny", "iwslt_d64"))
class PlusBusemannParts(HyboNetPlusParts):
    """``hybonet_plus`` with logits from Busemann functions."""

    def logits(self, num_embeddings: int, padding_idx: int, *, tied: Any, before: Any) -> Any:
        table = tied or self.embedding(num_embeddings, padding_idx)
        return BusemannLogits(table, input_curvature=before.curvature)


__all__ = ["BusemannLogits", "HyperplaneLogits", "Hyperplanes"]
