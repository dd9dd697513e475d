"""The parts that an architecture supplies to the shared encoder-decoder."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

from torch import Tensor, nn

from hyptrans.geometry.space import Space
from hyptrans.layers.attention import Attention
from hyptrans.seq2seq.sizes import Side

Part = TypeVar("Part", bound=nn.Module)


@dataclass(frozen=True)
class Role:
    """The role of an attention: it attends to its own side, causally or not, or to a memory.

    Attributes:
        causal: whether a position is kept from attending to later ones.
        memory: in cross-attention, the part whose output is the memory.
        memory_width: width of the memory.
    """

    causal: bool = False
    memory: nn.Module | None = None
    memory_width: int | None = None


class Parts(ABC):
    """An architecture's parts for one side, encoder or decoder.

    All states between parts are points of the architecture's space, ``[B, T, side.width]``. A
    sublayer owns its residual, since some architectures add it inside their last linear map.
    ``before`` is the part whose output a part reads; some architectures need its curvature.

    Args:
        cfg: the architecture's configuration.
        side: sizes of the encoder or of the decoder.

    Raises:
        ValueError: a size is below 1, the width is not divisible by the number of heads, or the
            attention takes no rotary positions.
    """

    around_forward: Callable[[nn.Module], AbstractContextManager[object]] = nullcontext
    """Makes of a model the context of its forward pass."""

    def __init__(self, cfg: Any, side: Side) -> None:
        sizes = {"embed-dim": side.width, "ffn-embed-dim": side.ffn_width}
        sizes |= {"attention-heads": side.heads, "layers": side.layers}
        for name, size in sizes.items():
            if size < 1:
                raise ValueError(f"--{side.name}-{name} must be at least 1, got {size}")
        if side.width % side.heads:
            raise ValueError(
                f"--{side.name}-embed-dim {side.width} is not divisible by "
                f"--{side.name}-attention-heads {side.heads}"
            )
        self.cfg, self.side = cfg, side
        if cfg.rotary_positions and not self.rotates:
            raise ValueError(
                "--rotary-positions needs softmax attention by dot products or Lorentzian "
                "distances, which this architecture lacks with these options: leave it out"
            )

    @property
    def rotates(self) -> bool:
        """Whether the attention takes rotary positions; then :meth:`make_attention` makes it."""
        return False

    def make_embedding(
        self, kind: Callable[..., Part], num_embeddings: int, padding_idx: int, **options: Any
    ) -> Part:
        """Return an embedding with this side's width."""
        return kind(num_embeddings, self.side.width, padding_idx=padding_idx, **options)

    def make_positions(self, kind: Callable[..., Part], **options: Any) -> Part:
        """Return a positional layer with this side's sizes and dropout."""
        side = self.side
        if self.cfg.rotary_positions:
            options["none"] = True
        options |= {"learned": side.learned_positions, "dropout": self.cfg.dropout}
        return kind(side.width, side.max_positions, **options)

    def make_attention(self, kind: Callable[..., Part], role: Role, **options: Any) -> Part:
        """Return an attention with this side's sizes and both dropouts."""
        options |= {"memory_width": role.memory_width, "causal": role.causal}
        options |= {"dropout": self.cfg.dropout, "attention_dropout": self.cfg.attention_dropout}
        made = kind(self.side.width, self.side.heads, **options)
        if self.cfg.rotary_positions and role.memory is None:
            self._rotate(made)
        return made

    def _rotate(self, attention: Any) -> None:
        """Make an attention rotate; refuse heads without a pair of coordinates to rotate."""
        side, least = self.side, attention.times + 2
        if side.width // side.heads < least:
            raise ValueError(
                f"--rotary-positions needs heads of width {least} or more, got "
                f"--{side.name}-attention-heads {side.heads} for --{side.name}-embed-dim "
                f"{side.width}"
            )
        attention.rotary = True

    def make_feed_forward(self, kind: Callable[..., Part], **options: Any) -> Part:
        """Return a feed-forward block with this side's sizes and dropout."""
        return kind(self.side.width, self.side.ffn_width, dropout=self.cfg.dropout, **options)

    @abstractmethod
    def embedding(self, num_embeddings: int, padding_idx: int) -> nn.Module:
        """Return a module: tokens ``[B, T]`` -> points."""

    @abstractmethod
    def positions(self, *, before: Any) -> nn.Module:
        """Return a module: points and positions ``[B, T]`` (from 0) -> points."""

    @abstractmethod
    def attention(self, role: Role, *, before: Any) -> Attention:
        """Return an attention: points, and in cross-attention a memory's points -> points."""

    @abstractmethod
    def feed_forward(self, *, before: Any) -> nn.Module:
        """Return a module: points -> points."""

    @abstractmethod
    def logits(self, num_embeddings: int, padding_idx: int, *, tied: Any, before: Any) -> nn.Module:
        """Return a module: points -> ``[B, T, num_embeddings]``.

        ``tied`` is the input embedding to share, or None. The module's second argument, a state or
        None, may keep what does not change while a batch is decoded. If the logits are a product,
        its ``factors`` are features ``[B, T, K]`` and a table ``[num_embeddings, K]``.
        """

    def final_norm(self) -> nn.Module | None:
        """Return the norm of the last layer's states, points -> points, or None."""
        return None

    @classmethod
    def current_names(cls, parameters: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return a file's parameters under this version's names for them."""
        return dict(parameters)

    @abstractmethod
    def space(self, part: Any) -> Space:
        """Return the space of the output of a part: the positions or a feed-forward block."""
