"""The decoder: target tokens and a memory to points of every layer, and to logits."""

import threading
from typing import Any

from torch import Tensor, nn

from hyptrans.layers.positions import token_positions
from hyptrans.seq2seq.encoder import Layered, any_of
from hyptrans.seq2seq.parts import Parts, Role
from hyptrans.seq2seq.state import DecoderState, LayerState


class DecoderLayer(nn.Module):
    """Causal self-attention, attention to the source, feed-forward."""

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

    def look(self, x: Tensor, padding: Any, memory: Tensor, memory_padding: Any) -> Tensor:
        """The weights on the source ``[B, H, T, S]``, without a state."""
        x = self.attention(x, padding=padding)
        return self.cross_attention.look(x, memory, padding=memory_padding)


class Decoder(Layered):
    """Target tokens and the encoder's last states to points, and those to logits.

    Shapes: tokens ``[B, T]``, memory ``[B, S, D]`` with its padding ``[B, S]`` -> of every layer,
    the embeddings first, ``[B, T, D]``; :attr:`logits` makes ``[B, T, V]`` of the last. With a
    ``state`` only the last token is new and ``T`` of the result is 1; where every ``n`` rows of
    tokens have the same source, the memory has it once for them, ``[B / n, S, D]``.

    Args:
        parts: of the architecture, for this side.
        words: dictionary of the target.
        embedding: of the target tokens.
        cross: what attention to the source attends to.
        tied: the logits share the embedding.

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
        """A state before the first token."""
        return DecoderState([LayerState() for _ in self.layers])

    def forward(
        self,
        tokens: Tensor,
        memory: Tensor,
        memory_padding: Tensor,
        state: DecoderState | None = None,
        *,
        look: bool = False,
    ) -> tuple[list[Tensor], Tensor | None]:
        """The states, and with ``look`` the last layer's weights on the source ``[B, T, S]``."""
        padding = tokens.eq(self.padding_idx)
        positions = token_positions(padding, self.longest)
        if state is None:
            # padding on the right needs no mask: nothing real looks that far ahead
            padded = any_of(padding[:, 0], memory_padding)
        else:
            tokens, positions = tokens[:, -1:], positions[:, -1:]
            if state.memory_padded is None:
                (state.memory_padded,) = any_of(memory_padding)
            padded = [False, state.memory_padded]
        mask, memory_mask = (
            m if p else None for m, p in zip((padding, memory_padding), padded, strict=True)
        )

        states = [self.embed_positions(self.embed_tokens(tokens), positions)]
        for i, layer in enumerate(self.layers):
            kept = None if state is None else state.layers[i]
            states.append(layer(states[-1], mask, memory, memory_mask, kept))
        if not look or state is not None:
            return states, None
        return states, self.layers[-1].look(states[-2], mask, memory, memory_mask).mean(1)

    def predict(
        self,
        tokens: Tensor,
        memory: Tensor,
        memory_padding: Tensor,
        state: DecoderState | None = None,
    ) -> Tensor:
        """Logits ``[B, T, V]``; the arguments are those of :meth:`forward`."""
        states, _ = Decoder.forward(self, tokens, memory, memory_padding, state)
        logits: Tensor = self.logits(states[-1], None if state is None else state.logits)
        return logits

    def look(self, tokens: Tensor, memory: Tensor, memory_padding: Tensor) -> Tensor:
        """The last layer's weights on the source, a mean over heads, ``[B, T, S]``."""
        weights: Any = Decoder.forward(self, tokens, memory, memory_padding, look=True)[1]
        return weights

    def attentions(
        self, tokens: Tensor, memory: Tensor, memory_padding: Tensor
    ) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        """The states, and the weights of each layer on the target ``[B, H, T, T]`` and source."""
        asked: list[Tensor] = []
        thread = threading.get_ident()

        def keep(_: Any, given: Any) -> None:
            if threading.get_ident() == thread:  # others may use the model
                asked.append(given[0])

        hooks = [layer.cross_attention.register_forward_pre_hook(keep) for layer in self.layers]
        try:
            states, _ = Decoder.forward(self, tokens, memory, memory_padding)
        finally:
            for hook in hooks:
                hook.remove()
        padding, own, cross = tokens.eq(self.padding_idx), [], []
        for layer, x, y in zip(self.layers, states[:-1], asked, strict=True):
            own.append(layer.attention.look(x, padding=padding))
            cross.append(layer.cross_attention.look(y, memory, padding=memory_padding))
        return states, own, cross
