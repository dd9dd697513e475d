"""Token embeddings on the hyperboloid."""

from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hyptrans.geometry import lorentz
from hyptrans.geometry.precision import at_least_float32
from hyptrans.kernels.hyperboloid import lift
from hyptrans.layers.choices import check_choice

Storage = Literal["space", "manifold"]
STORAGES: tuple[Storage, ...] = get_args(Storage)


class LorentzEmbedding(nn.Module):
    """A table of points, one per token.

    ``storage="space"`` keeps the space coordinates as an ordinary parameter, N(0, 1 / width), and
    computes the time on use: any optimizer, precision or averaging applies. ``"manifold"`` keeps
    whole points as a geoopt manifold parameter, as in the HyboNet paper; it needs Riemannian Adam.

    Shapes: tokens ``[...]`` -> ``[..., width]``.

    Args:
        num_embeddings: size of the vocabulary.
        width: numbers of a point, time included.
        padding_idx: this row starts as the origin and gets no gradient from looking it up.
        c: the hyperboloid has curvature ``-c``.
        storage: how the points are kept.

    Raises:
        ValueError: ``c`` is not above 0, or there is no such storage.
    """

    def __init__(
        self,
        num_embeddings: int,
        width: int,
        *,
        padding_idx: int | None = None,
        c: float = 1.0,
        storage: Storage = "space",
    ) -> None:
        super().__init__()
        if not c > 0:
            raise ValueError(f"curvature c must be above 0 (the space has -c), got {c}")
        check_choice("storage", storage, STORAGES)
        self.width, self.padding_idx, self.c, self.storage = width, padding_idx, c, storage
        if storage == "space":
            self.weight = nn.Parameter(torch.empty(num_embeddings, width - 1))
            nn.init.normal_(self.weight, std=width**-0.5)
            padding = torch.zeros(width - 1)
        else:
            # geoopt is slow to import, and of no use to other models
            from hyptrans.layers.lorentz.manifold import ManifoldParameter, StableLorentz

            manifold = StableLorentz(1 / c)
            empty = torch.empty(num_embeddings, width)
            self.weight = ManifoldParameter(empty, manifold=manifold)
            with torch.no_grad():
                # geoopt draws points a distance of 1 from the origin at any curvature
                unit = StableLorentz().random_normal(num_embeddings, width)
                self.weight.copy_(unit / c**0.5)
            padding = lorentz.origin(width, c=c)
        if padding_idx is not None:
            with torch.no_grad():
                self.weight[padding_idx] = padding

    def forward(self, tokens: Tensor) -> Tensor:
        return self._points(F.embedding(tokens, self.weight, self.padding_idx))

    def points(self, c: lorentz.CurvatureLike | None = None) -> Tensor:
        """All points of the table, ``[num_embeddings, width]``.

        With ``c``, for use at curvature ``-c``: space coordinates are lifted there; points of a
        manifold, which stay at their curvature, are moved there, with the order of distances kept.
        """
        return self._points(self.weight, c)

    def _points(self, rows: Tensor, c: lorentz.CurvatureLike | None = None) -> Tensor:
        # recomputing the time keeps a point stored in half precision on the hyperboloid
        if self.storage == "space":
            return lift(rows, c=self.c if c is None else c)
        if c is None:
            return lift(rows[..., 1:], c=self.c)
        return lift(at_least_float32(rows[..., 1:]) * (self.c / c) ** 0.5, c=c)
