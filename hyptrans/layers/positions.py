"""Positions, the same for every geometry: vectors to add, and rotations of queries and keys."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hyptrans.geometry.precision import at_least_float32

FIRST_POSITION = 2
"""First position of sinusoids, as in fairseq: one more than the index of its padding symbol."""
_HALF_PRECISION = 1e-2
"""More than the rounding error of numbers up to 1 in bfloat16."""
POSITION_STD = 0.02
"""Standard deviation of learned vectors at the start."""
ROTARY_BASE = 10_000.0
"""Of many pairs, the first turns about this many times as fast as the last."""


def sinusoids(max_positions: int, width: int) -> Tensor:
    """Return fixed position vectors ``[max_positions, width]``: all sines, then all cosines.

    Wavelengths grow geometrically from ``2 pi`` to ``10,000 * 2 pi``, both ends included.

    Raises:
        ValueError: ``width`` is below 4, too few for two wavelengths.
    """
    if width < 4:
        raise ValueError(f"sinusoidal positions need a width of at least 4, got {width}")
    half = width // 2
    # float32, whatever torch's default dtype is
    places = torch.arange(half, dtype=torch.float32)
    rates = torch.exp(places * (-math.log(10_000.0) / (half - 1)))
    angles = torch.arange(FIRST_POSITION, FIRST_POSITION + max_positions)[:, None] * rates
    return F.pad(torch.cat([angles.sin(), angles.cos()], dim=1), (0, width % 2))


def register_sinusoids(module: nn.Module, name: str, max_positions: int, width: int) -> None:
    """Register :func:`sinusoids` as a module's buffer that checkpoints leave out.

    So a model for longer sentences can load the checkpoint.
    """
    # register before filling: code that builds an untrusted model counts registered buffers
    module.register_buffer(
        name, torch.empty(max_positions, width, dtype=torch.float32), persistent=False
    )
    module.get_buffer(name).copy_(sinusoids(max_positions, width))


class FixedVectors(nn.Module):
    """Sinusoids, looked up by position.

    Shapes: positions ``[B, T]`` (from 0) -> ``[B, T, width]``.

    Args:
        max_positions: the layer encodes positions from 0 to one less than this.
        width: numbers of a vector.
    """

    weight: Tensor

    def __init__(self, max_positions: int, width: int) -> None:
        super().__init__()
        register_sinusoids(self, "weight", max_positions, width)

    def forward(self, positions: Tensor) -> Tensor:
        return F.embedding(positions, self.weight)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *others: Any) -> None:
        # earlier versions saved sinusoids; learned vectors do not fit here: loading reports them
        saved = state_dict.get(f"{prefix}weight")
        if saved is not None and self._is_a_part(saved):
            del state_dict[f"{prefix}weight"]
        super()._load_from_state_dict(state_dict, prefix, *others)

    def _is_a_part(self, saved: Tensor) -> bool:
        """Return whether saved vectors equal these in any precision, as far as both go."""
        if saved.dim() != self.weight.dim():
            return False
        own = self.weight[: len(saved)].float()
        found = saved[: len(own)].to(own)
        return own.shape == found.shape and torch.allclose(own, found, atol=_HALF_PRECISION)


def position_vectors(
    max_positions: int, width: int, *, learned: bool
) -> nn.Embedding | FixedVectors:
    """Return a table of position vectors ``[max_positions, width]``: learned, or sinusoids."""
    if not learned:
        return FixedVectors(max_positions, width)
    table = nn.Embedding(max_positions, width)
    nn.init.normal_(table.weight, std=POSITION_STD)
    return table


def rotate(
    query: Tensor, key: Tensor, positions: Tensor, *, fixed: int = 0
) -> tuple[Tensor, Tensor]:
    """Rotate pairs of coordinates by angles that grow with the position (RoPE).

    Behind the first ``fixed`` coordinates, ``i`` and ``i + h`` are one of ``h`` pairs; at position
    ``m`` it turns by ``m 10,000^(-i / h)``. So the product of a rotated query and a rotated key
    depends on the difference of their positions alone. With ``fixed=1`` Lorentz points keep their
    time, and the rotation of their space keeps them on the hyperboloid. If the number of
    coordinates to rotate is odd, the last one stays.

    Shapes: query and key ``[..., T, d]``, positions ``[T]`` or, one for all, ``[1]`` -> as query
    and key.
    Source: Su et al. (2021), eq. 34, with other pairs; on the hyperboloid, HELM's HoPE (He et al.
    2025, arXiv 2505.24722).
    """
    half, dtype = (query.size(-1) - fixed) // 2, at_least_float32(query).dtype
    places = torch.arange(half, dtype=dtype, device=query.device)
    angles = positions[:, None] * ROTARY_BASE ** (-places / half)
    cos, sin = angles.cos(), angles.sin()

    def turned(x: Tensor) -> Tensor:
        numbers = at_least_float32(x)
        before, one, other, last = numbers.tensor_split((fixed, fixed + half, fixed + 2 * half), -1)
        pair = [one * cos - other * sin, one * sin + other * cos]
        return torch.cat([before, *pair, last], dim=-1).to(x.dtype)

    return turned(query), turned(key)
