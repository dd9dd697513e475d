"""The residual connection of the usual form, for architectures whose states are vectors."""

from torch import Tensor, nn

from hyptrans.kernels.operators import relu_dropout


class ResidualNorm(nn.Module):
    """End of a sublayer: ``LayerNorm(x + dropout(update))``, the norm after the sum.

    Shapes: x, update ``[..., width]`` -> ``[..., width]``.

    Args:
        width: numbers of a state.
        dropout: probability of zeroing a number of the update while training.
    """

    def __init__(self, width: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = dropout
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor, update: Tensor) -> Tensor:
        return self.norm(x + relu_dropout(update, self.dropout, training=self.training))
