"""The loss of a training by the library, and a check that points stay on their space."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hyptrans.geometry import lorentz
from hyptrans.geometry.precision import at_least_float32
from hyptrans.support.errors import UserError

IGNORED = -100
"""A label that adds no loss."""
OFF = 1e-5
"""How far a point may be off its space, relative to its squared time: 100 times the rounding."""


def loss(logits: Tensor, labels: Tensor, items: Any) -> Tensor:
    """Return the cross entropy: the mean over labels, or the sum divided by ``items``."""
    # in half precision a sum of thousands of terms has two correct digits
    logits = at_least_float32(logits.flatten(0, 1))
    summed = F.cross_entropy(logits, labels.flatten(), reduction="sum")
    return summed / (labels.ne(IGNORED).sum() if items is None else items)


def check_points(model: nn.Module, encoder: Any) -> None:
    """Refuse training that moves a model's embeddings off their space.

    Raises:
        UserError: noise is added to them, or an optimizer treats them as vectors.
    """
    table = encoder.embed_tokens
    curved = encoder.space_of(table).kind != "euclidean"
    if curved and getattr(table, "neftune_noise_alpha", None):
        raise UserError("neftune_noise_alpha moves points off their space: leave it out")
    for name, point in model.named_parameters():
        if hasattr(point, "manifold") and point.dtype in (torch.float32, torch.float64):
            with torch.no_grad():
                off = lorentz.violation(point, c=point.manifold.c).max()
            if off > OFF:
                raise UserError(
                    f"{name} has points that the optimizer moved off their space: train with "
                    'hyptrans.optim.RiemannianAdam, or with embedding_storage="space"'
                )
