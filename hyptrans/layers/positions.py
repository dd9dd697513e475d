"""Position vectors, the same for every geometry."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

FIRST_POSITION = 2
"""First position of sinusoids, as in fairseq: one more than the index of its padding symbol."""
_HALF_PRECISION = 1e-2
"""More than the rounding error of numbers up to 1 in bfloat16."""
POSITION_STD = 0.02
"""Standard deviation of learned vectors at the start."""


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
