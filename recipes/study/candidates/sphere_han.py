"""HAN on spheres: hyperbolic attention between states that HyboNet's blocks keep at one length."""

from typing import Any

from torch import Tensor

from hyptrans.fairseq.config import register_sizes
from hyptrans.fairseq.model import HypTransformer
from hyptrans.layers.han import HyperbolicAttention
from hyptrans.layers.hybonet import INITIAL_LOG_SCALE
from hyptrans.layers.sphere import SphereLinear
from hyptrans.models.han import HANConfig, HANParts
from hyptrans.models.sphere import SphereParts


class SphereHANAttention(HyperbolicAttention):
    """HAN's attention; its result and the residual are brought to one length, as HyboNet's are."""

    def __init__(self, width: int, heads: int, *, dropout: float = 0.0, **options: Any) -> None:
        super().__init__(width, heads, **options)
        out = SphereLinear(width, width, log_radius=INITIAL_LOG_SCALE, dropout=dropout)
        self.out = out  # type: ignore[assignment]
        del self.residual

    def merge(self, heads: Tensor, x: Tensor) -> Tensor:
        merged: Tensor = self.out(heads.transpose(1, 2).flatten(2), x)
        return merged

    # states on spheres are float32 or better, whatever the weights are
    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return super().project(x.to(self.qkv.weight.dtype))

    def query(self, x: Tensor) -> Tensor:
        return super().query(x.to(self.q.weight.dtype))

    def keys_and_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        return super().keys_and_values(memory.to(self.kv.weight.dtype))


class SphereHANParts(SphereParts):
    """Blocks on spheres; queries, keys and values are points of hyperbolic space."""

    attention_type = SphereHANAttention
    attention: Any = HANParts.attention


@register_sizes("sphere_han", HANConfig, ("tiny", "iwslt_d64"))
class SphereHAN(HypTransformer):
    """HyboNet's blocks on spheres, with HAN's attention."""

    parts = SphereHANParts
