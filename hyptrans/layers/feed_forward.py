"""Feed-forward block of HyboNet."""

from torch import Tensor, nn

from hyptrans.layers.linear import LorentzLinear, Residual


class LorentzFeedForward(nn.Module):
    """Two Lorentz linear layers; the second has ReLU on its input and the block's residual.

    Shapes: ``[..., width]`` -> ``[..., width]``. Source: HyboNet sec. 3.4, residual eq. 7.

    Args:
        width: numbers of a point of the input and the output, time included.
        inner_width: numbers of a point between the two layers, time included.
        c: the hyperboloid has curvature ``-c``.
        dropout: probability on the inputs of both layers (after ReLU in the second).
        residual: see :class:`LorentzLinear`.
    """

    def __init__(
        self,
        width: int,
        inner_width: int,
        *,
        c: float = 1.0,
        dropout: float = 0.0,
        residual: Residual = "full",
    ) -> None:
        super().__init__()
        self.expand = LorentzLinear(width, inner_width, c=c, dropout=dropout)
        self.contract = LorentzLinear(
            inner_width, width, c=c, relu=True, dropout=dropout, residual=residual
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.contract(self.expand(x), x)
