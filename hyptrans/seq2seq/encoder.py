"""The encoder: turns source tokens into points of every layer."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from hyptrans.geometry.space import Space
from hyptrans.seq2seq.parts import Parts, Role


class Layered(nn.Module):
    """An encoder or decoder: embedding, positions, and layers whose states are points.

    Attributes:
        dictionary: its vocabulary.
        longest: most tokens of a sentence, the end of the sentence included.
    """

    def __init__(
        self,
        parts: Parts,
        words: Any,
        embedding: nn.Module,
        make_layer: Callable[[nn.Module], nn.Module],
    ) -> None:
        # not super(): another library's base class may come between this class and torch's
        nn.Module.__init__(self)
        self.dictionary, self.padding_idx = words, words.pad()
        self.longest, self.layerdrop = parts.side.max_positions, parts.side.layerdrop
        self.embed_tokens = embedding
        self.embed_positions = parts.positions(before=embedding)
        self.layers: Any = nn.ModuleList()
        for _ in range(parts.side.layers):
            self.layers.append(make_layer(self.last_parts()[-1]))
        self.final_norm = parts.final_norm()
        self.space_of = parts.space

    def last_parts(self) -> list[nn.Module]:
        """Return the parts whose outputs are the states, the embeddings first."""
        return [self.embed_positions, *(layer.feed_forward for layer in self.layers)]

    def state_spaces(self) -> list[Space]:
        """Return the space of each state, with the curvature learned so far."""
        return [self.space_of(part) for part in self.last_parts()]

    def through_layers(self, x: Tensor, run: Callable[[int, Tensor], Tensor]) -> list[Tensor]:
        """Return the states of all layers, ``x`` first; ``run`` gets a layer's number and input.

        In training each layer is skipped with probability ``layerdrop``; its state is then that of
        the layer before.
        """
        states, drawn = [x], [1.0] * len(self.layers)
        if self.training and self.layerdrop:
            drawn = torch.rand(len(self.layers)).tolist()
        for number, keep in enumerate(drawn):
            states.append(run(number, states[-1]) if keep > self.layerdrop else states[-1])
        if self.final_norm is not None:
            states[-1] = self.final_norm(states[-1])
        return states


def token_positions(padding: Tensor, longest: int) -> Tensor:
    """Return the number of real tokens before each position, whichever side the padding is on.

    Shapes: padding ``[B, T]``, true at padding -> ``[B, T]``.

    Raises:
        ValueError: a sentence has more than ``longest`` tokens.
    """
    # a row has at most as many tokens as columns, so most batches pass without reading the values
    if padding.size(1) > longest and int((~padding).sum(1).max()) > longest:
        raise ValueError(
            f"a sentence has {int((~padding).sum(1).max())} tokens, the model takes {longest}: "
            "raise --max-source-positions or --max-target-positions, or leave it out"
        )
    return (torch.cumsum(~padding, dim=1) - 1).clamp_min(0)


class EncoderLayer(nn.Module):
    """A layer: self-attention and feed-forward."""

    def __init__(self, parts: Parts, before: nn.Module) -> None:
        super().__init__()
        self.attention = parts.attention(Role(), before=before)
        self.feed_forward = parts.feed_forward(before=self.attention)

    def forward(self, x: Tensor, padding: Tensor | None) -> Tensor:
        return self.feed_forward(self.attention(x, padding=padding))


def any_of(*masks: Tensor) -> list[bool]:
    """Return whether each mask has a true entry; wait for the device only once.

    While a compiler traces the model, the answer is always yes.
    """
    if torch.compiler.is_compiling():
        return [True] * len(masks)
    return [bool(found) for found in torch.stack([mask.any() for mask in masks]).tolist()]


class Encoded(NamedTuple):
    """The output of an encoder for tokens ``[B, S]``."""

    embedded: Tensor
    """``[B, S, D]``: the tokens' points, without positions."""
    states: list[Tensor]
    """``[B, S, D]`` each: embeddings with positions, then every layer; the last is the memory."""
    padding: Tensor
    """``[B, S]``, true at padding."""


class Encoder(Layered):
    """Turns source tokens into points.

    Shapes: tokens ``[B, S]``, padded on either side -> :class:`Encoded`.

    Raises:
        ValueError: a sentence has more tokens than the model takes.
    """

    def __init__(self, parts: Parts, words: Any, embedding: nn.Module) -> None:
        super().__init__(parts, words, embedding, lambda before: EncoderLayer(parts, before))

    def forward(self, tokens: Tensor) -> Encoded:
        padding = tokens.eq(self.padding_idx)
        mask = padding if any_of(padding)[0] else None
        embedded = self.embed_tokens(tokens)
        first = self.embed_positions(embedded, token_positions(padding, self.longest))
        states = self.through_layers(first, lambda number, x: self.layers[number](x, mask))
        return Encoded(embedded, states, padding)

    def attentions(self, tokens: Tensor) -> tuple[Encoded, list[Tensor]]:
        """Return the result of :meth:`forward`, and each layer's weights ``[B, H, S, S]``."""
        found = Encoder.forward(self, tokens)
        layers = zip(self.layers, found.states[:-1], strict=True)
        return found, [layer.attention.look(x, padding=found.padding) for layer, x in layers]

    def memory(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Return the last states ``[B, S, D]``, which the decoder attends to, and their padding."""
        found = Encoder.forward(self, tokens)
        return found.states[-1], found.padding
