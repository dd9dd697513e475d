"""The decoder: turns target tokens and a memory into each layer's points, and these into logits."""

from typing import Any

from torch import Tensor, nn

from hyptrans.seq2seq.encoder import Layered, any_of, token_positions
from hyptrans.seq2seq.parts import Parts, Role
from hyptrans.seq2seq.state import DecoderState, LayerState


class DecoderLayer(nn.Module):
    """A layer: causal self-attention, attention to the source, feed-forward."""

    def __init__(self, parts: Parts, before: nn.Module, cross: Role) -> None:
        super().__init__()
        self.attention = parts.attention(Role(causal=True), before=before)
        self.cross_attention = parts.attention(cross, before=self.attention)
        self.feed_forward = parts.feed_forward(before=self.cross_attention)

    def forward(
        self,
        x: Tensor,
        padding: Tensor | None,
        memory: Tensor,
        memory_padding: Tensor | None,
        state: LayerState | None,
    ) -> Tensor:
        own, cross = (None, None) if state is None else (state.attention, state.cross_attention)
        x = self.attention(x, padding=padding, state=own)
        x = self.cross_attention(x, memory, padding=memory_padding, state=cross)
        return self.feed_forward(x)

    def look(
        self, x: Tensor, padding: Tensor, memory: Tensor, memory_padding: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the attention weights on target ``[B, H, T, T]`` and source ``[B, H, T, S]``."""
        own = self.attention.look(x, padding=padding)
        x = self.attention(x, padding=padding)
        return own, self.cross_attention.look(x, memory, padding=memory_padding)


class Decoder(Layered):
    """Turns target tokens and the encoder's last states into points, and these into logits.

    Shapes: tokens ``[B, T]``, memory ``[B, S, D]`` with its padding ``[B, S]`` -> ``[B, T, D]`` for
    the embeddings and then for every layer; :attr:`logits` turns the last into ``[B, T, V]``. With
    a ``state`` only the last token is new and ``T`` of the result is 1. If every ``n`` rows of
    tokens share a source, the memory holds it once for them: ``[B / n, S, D]``.

    Args:
        parts: the architecture's parts for this side.
        words: dictionary of the target.
        embedding: embedding of the target tokens.
        cross: the role of attention to the source.
        tied: whether the logits share the embedding's table.

    Raises:
        ValueError: a sentence has more tokens than the model takes.
    """

    def __init__(
        self,
        parts: Parts,
        words: Any,
        embedding: nn.Module,
        *,
        cross: Role,
        tied: bool,
    ) -> None:
        super().__init__(parts, words, embedding, lambda before: DecoderLayer(parts, before, cross))
        self.logits = parts.logits(
            len(words),
            words.pad(),
            tied=embedding if tied else None,
            before=self.last_parts()[-1],
        )

    def start(self) -> DecoderState:
        """Return the state before the first token."""
        return DecoderState([LayerState() for _ in self.layers])

    def forward(
        self,
        tokens: Tensor,
        memory: Tensor,
        memory_padding: Tensor,
        state: DecoderState | None = None,
    ) -> list[Tensor]:
        """Return the states of every layer, the embeddings first."""
        padding = tokens.eq(self.padding_idx)
        positions = token_positions(padding, self.longest)
        if state is None:
            # padding on the right needs no mask: no real token attends that far ahead
            padded = any_of(padding[:, :-1] & ~padding[:, 1:], memory_padding)
        else:
            tokens, positions = tokens[:, -1:], positions[:, -1:]
            padded = any_of(padding, memory_padding)
        mask, memory_mask = (
            m if p else None for m, p in zip((padding, memory_padding), padded, strict=True)
        )
        kept = [None] * len(self.layers) if state is None else state.layers
        return self.through_layers(
            self.embed_positions(self.embed_tokens(tokens), positions),
            lambda number, x: self.layers[number](x, mask, memory, memory_mask, kept[number]),
        )

    def predict(
        self,
        tokens: Tensor,
        memory: Tensor,
        memory_padding: Tensor,
        state: DecoderState | None = None,
    ) -> Tensor:
        """Return logits ``[B, T, V]``; the arguments are those of :meth:`forward`."""
        states = Decoder.forward(self, tokens, memory, memory_padding, state)
        logits: Tensor = self.logits(states[-1], None if state is None else state.logits)
        return logits

    def look(self, tokens: Tensor, memory: Tensor, memory_padding: Tensor) -> Tensor:
        """Return the last layer's weights on the source, averaged over heads, ``[B, T, S]``."""
        states = Decoder.forward(self, tokens, memory, memory_padding)
        return self.look_last(tokens, states, memory, memory_padding)

    def look_last(
        self, tokens: Tensor, states: list[Tensor], memory: Tensor, memory_padding: Tensor
    ) -> Tensor:
        """Return what :meth:`look` does, from states that :meth:`forward` returned."""
        padding = tokens.eq(self.padding_idx)
        weights: Tensor = self.layers[-1].look(states[-2], padding, memory, memory_padding)[1]
        return weights.mean(1)

    def attentions(
        self, tokens: Tensor, memory: Tensor, memory_padding: Tensor
    ) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        """Return the states, and each layer's weights on target ``[B, H, T, T]`` and source."""
        states = Decoder.forward(self, tokens, memory, memory_padding)
        padding, own, cross = tokens.eq(self.padding_idx), [], []
        for layer, x in zip(self.layers, states[:-1], strict=True):
            of_target, of_source = layer.look(x, padding, memory, memory_padding)
            own.append(of_target)
            cross.append(of_source)
        return states, own, cross
