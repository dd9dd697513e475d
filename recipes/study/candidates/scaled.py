"""``hybonet_plus`` with fixed curvature, all lengths times a factor: curvature and scale apart.

With ``--curvature 1/s^2`` and ``--initial-scale s`` a model starts as the same function of its tokens
as with 1 and 1; only the size of its numbers, and so the effect of a step of Adam, differs.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from hyptrans.layers.hypformer import CentroidNorm, HypformerLogits
from hyptrans.models.hybonet_plus import HyboNetPlusConfig, HyboNetPlusParts
from hyptrans.seq2seq.architectures import register_sizes
from hyptrans.support.options import option


@dataclass
class ScaledConfig(HyboNetPlusConfig):
    """Options of ``hybonet_plus``, and the scale."""

    hypformer_learn_curvature: bool = option(False, "learn a curvature per block")
    initial_scale: float = option(1.0, "factor of all lengths at the start", in_formula=True)


class ScaledLogits(HypformerLogits):
    """Logits divided by the square of the scale."""

    scale = 1.0

    def factors(self, x: Tensor, state: Any = None) -> tuple[Tensor, Tensor]:
        """See :meth:`LorentzLogits.factors`; the bias keeps its size."""
        features, table = super().factors(x, state)
        divide = torch.full_like(features[..., :1], self.scale**-2)
        return torch.cat([features[..., :-1] * divide, features[..., -1:]], -1), table

    def _table(self) -> Tensor:
        c = self.curvature
        points = self.table.points(c)
        added = self.bias.float() + 2 / c / self.scale**2
        return torch.cat([points, added.unsqueeze(-1)], dim=-1)


@register_sizes("scaled", ScaledConfig, ("tiny", "iwslt_d64"))
class ScaledParts(HyboNetPlusParts):
    """Scale gains of norms, embeddings and positions by ``s``, ``tau`` by ``s^2``."""

    def _scaled(self, part: nn.Module) -> nn.Module:
        s = float(self.cfg.initial_scale)
        with torch.no_grad():
            for one in part.modules():
                if isinstance(one, CentroidNorm):
                    one.weight.mul_(s)
            for name, parameter in part.named_parameters():
                if name.endswith("tau"):
                    parameter.mul_(s * s)
        return part

    def embedding(self, num_embeddings: int, padding_idx: int) -> Any:
        made = super().embedding(num_embeddings, padding_idx)
        with torch.no_grad():
            made.weight.mul_(float(self.cfg.initial_scale))
        return made

    def positions(self, *, before: Any) -> Any:
        made: Any = self._scaled(super().positions(before=before))
        if made.vectors is not None:
            with torch.no_grad():
                for parameter in made.vectors.parameters():
                    parameter.mul_(float(self.cfg.initial_scale))
                for buffer in made.vectors.buffers():
                    buffer.mul_(float(self.cfg.initial_scale))
        return made

    def attention(self, role: Any, *, before: Any) -> Any:
        return self._scaled(super().attention(role, before=before))

    def feed_forward(self, *, before: Any) -> Any:
        return self._scaled(super().feed_forward(before=before))

    def logits(self, num_embeddings: int, padding_idx: int, *, tied: Any, before: Any) -> Any:
        assert tied is not None
        made = ScaledLogits(tied, input_curvature=before.curvature)
        made.scale = float(self.cfg.initial_scale)
        return made
