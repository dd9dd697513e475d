"""HAN with layer normalization before each block: the pre-norm twin with hyperbolic attention."""

from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from hyptrans.fairseq.config import register_sizes
from hyptrans.fairseq.model import HypTransformer
from hyptrans.kernels.operators import relu_dropout
from hyptrans.layers.euclidean import DotProductLogits, FeedForward
from hyptrans.layers.han import HyperbolicAttention
from hyptrans.models.han import HANConfig, HANParts


class StreamSum(nn.Module):
    """End of a sublayer: ``x + dropout(update)``, which nothing normalizes.

    Shapes: x, update ``[..., width]`` -> ``[..., width]``.
    """

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout

    def forward(self, x: Tensor, update: Tensor) -> Tensor:
        return x + relu_dropout(update, self.dropout, training=self.training)


class PreNormAttention(HyperbolicAttention):
    """HAN's attention of normalized states, whose result is added to the stream."""

    def __init__(self, width: int, heads: int, *, dropout: float = 0.0, **options: Any) -> None:
        super().__init__(width, heads, **options)
        self.norm = nn.LayerNorm(width)
        memory_width = options.get("memory_width")
        self.memory_norm = None if memory_width is None else nn.LayerNorm(memory_width)
        self.residual = StreamSum(dropout)  # type: ignore[assignment]

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return super().project(self.norm(x))

    def query(self, x: Tensor) -> Tensor:
        return super().query(self.norm(x))

    def keys_and_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        normalized = memory if self.memory_norm is None else self.memory_norm(memory)
        return super().keys_and_values(normalized)


class PreNormFeedForward(FeedForward):
    """The Transformer's feed-forward block of normalized states, added to the stream."""

    def __init__(self, width: int, inner_width: int, *, dropout: float = 0.0) -> None:
        super().__init__(width, inner_width)
        self.norm = nn.LayerNorm(width)
        self.residual = StreamSum(dropout)  # type: ignore[assignment]

    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = self.residual(x, self.contract(F.relu(self.expand(self.norm(x)))))
        return made


class PreNormLogits(DotProductLogits):
    """The Transformer's logits of normalized states."""

    def __init__(self, num_embeddings: int, width: int, **options: Any) -> None:
        super().__init__(num_embeddings, width, **options)
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor, state: Any = None) -> Tensor:
        return super().forward(self.norm(x), state)

    def factors(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return super().factors(self.norm(x))


class PreNormParts(HANParts):
    """HAN's in pre-norm form."""

    attention_type = PreNormAttention

    def feed_forward(self, *, before: Any) -> PreNormFeedForward:
        return PreNormFeedForward(self.side.width, self.side.ffn_width, dropout=self.cfg.dropout)

    def logits(
        self, num_embeddings: int, padding_idx: int, *, tied: Any, before: Any
    ) -> PreNormLogits:
        return PreNormLogits(num_embeddings, self.side.width, table=tied)


@register_sizes("han_prenorm", HANConfig, ("tiny", "iwslt_d64"))
class HANPreNorm(HypTransformer):
    """HAN in pre-norm form."""

    parts = PreNormParts
