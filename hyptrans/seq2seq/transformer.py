"""The Transformer with fairseq's names of parameters, and its numbers to the last digit.

Its calls of torch are those that fairseq's make, with the same shapes: in evaluation, an encoder
that normalizes after its blocks is torch's fused one.
"""

import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hyptrans.geometry.space import Space
from hyptrans.layers.positions import register_sinusoids, token_positions
from hyptrans.seq2seq.encoder import Encoded, any_of
from hyptrans.seq2seq.model import EncoderDecoder, Words
from hyptrans.seq2seq.sharing import check_shareable, check_shared
from hyptrans.seq2seq.sizes import Side, side_of
from hyptrans.seq2seq.transformer_layers import Attention, DecoderLayer, EncoderLayer
from hyptrans.seq2seq.transformer_step import Step, TransformerState

_NOT_LEARNED = re.compile(
    r"(encoder|decoder)\.(version|embed_positions\.(weights|_float_tensor))|version|"
    r"encoder\.layers\.\d+\.(in_proj|out_proj|fc1|fc2)_(weight|bias)"
)
"""Of a file: versions, sinusoids and weights that fairseq's encoder layer keeps a second time."""


class _Positions(nn.Module):
    """A vector per position, learned or sinusoidal; that of padding is not moved by any."""

    weight: Tensor

    def __init__(self, side: Side, padding_idx: int) -> None:
        super().__init__()
        self.longest, self.padding_idx, self.learned = (
            side.max_positions,
            padding_idx,
            side.learned_positions,
        )
        if self.learned:
            rows = side.max_positions + padding_idx + 1
            self.weight = nn.Parameter(torch.zeros(rows, side.width))
        else:
            register_sinusoids(self, "weight", side.max_positions, side.width)

    def forward(self, padding: Tensor, last: int) -> Tensor:
        """Padding ``[B, T]``, true there -> of the ``last`` positions ``[B, last, D]``."""
        places = token_positions(padding, self.longest)[:, -last:]
        padding = padding[:, -last:]
        if self.learned:
            places = (places + self.padding_idx + 1).masked_fill(padding, self.padding_idx)
            return F.embedding(places, self.weight)
        return F.embedding(places, self.weight).masked_fill(padding[..., None], 0.0)


class _Side(nn.Module):
    """An encoder or decoder: embedding, positions, layers."""

    def __init__(self, cfg: Any, side: Side, words: Words, table: nn.Embedding) -> None:
        super().__init__()
        self.dictionary, self.padding_idx, self.longest = words, words.pad(), side.max_positions
        self.embed_tokens = table
        self.scale = 1.0 if cfg.no_scale_embedding else side.width**0.5
        self.embed_positions, self.layernorm_embedding = None, None
        if not cfg.no_token_positional_embeddings:
            self.embed_positions = _Positions(side, self.padding_idx)
        if cfg.layernorm_embedding:
            self.layernorm_embedding = nn.LayerNorm(side.width)
        self.layer_norm: nn.Module | None = None
        self.layers: Any = nn.ModuleList()

    def embed(self, tokens: Tensor, padding: Tensor) -> Tensor:
        """Tokens ``[B, T]``, the last of those of ``padding`` -> ``[B, T, D]``."""
        x = self.scale * self.embed_tokens(tokens)
        if self.embed_positions is not None:
            x = x + self.embed_positions(padding, tokens.size(1))
        return x if self.layernorm_embedding is None else self.layernorm_embedding(x)

    def last(self, x: Tensor) -> Tensor:
        return x if self.layer_norm is None else self.layer_norm(x)

    def state_spaces(self) -> list[Space]:
        """The space of each of the states."""
        return [Space("euclidean")] * (len(self.layers) + 1)


class TransformerEncoder(_Side):
    """Source tokens to vectors; the interface is that of :class:`hyptrans.seq2seq.encoder.Encoder`.

    With norms before the blocks, the last of the states has one norm more than its layer's.
    """

    def __init__(self, cfg: Any, side: Side, words: Words, table: nn.Embedding) -> None:
        super().__init__(cfg, side, words, table)
        self.before = cfg.encoder_normalize_before
        for _ in range(side.layers):
            self.layers.append(EncoderLayer(cfg, side, before=self.before))
        if self.before:
            self.layer_norm = nn.LayerNorm(side.width)
        self.fuses = not self.before and cfg.activation_fn == "relu"

    def forward(self, tokens: Tensor) -> Encoded:
        x, padding, mask = self._start(tokens)
        states = [x.transpose(0, 1)]
        for layer in self.layers:
            states.append(layer(states[-1], mask))
        states[-1] = self.last(states[-1])
        return Encoded(x, [state.transpose(0, 1) for state in states], padding)

    def attentions(self, tokens: Tensor) -> tuple[Encoded, list[Tensor]]:
        """What :meth:`forward` returns, and the weights of each layer, ``[B, H, S, S]``."""
        found = self(tokens)
        layers = zip(self.layers, found.states[:-1], strict=True)
        return found, [layer.look(x.transpose(0, 1), found.padding) for layer, x in layers]

    def memory(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """The last states ``[B, S, D]``, which the decoder attends to, and their padding."""
        if not self.fuses or self.training or torch.compiler.is_compiling():
            found = self(tokens)
            return found.states[-1], found.padding
        x, padding, mask = self._start(tokens)
        for layer in self.layers:
            x = layer.fused(x, mask)
        return x, padding

    def _start(self, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        padding = tokens.eq(self.padding_idx)
        x = self.embed(tokens, padding)
        if not any_of(padding)[0]:
            return x, padding, None
        return x * (1 - padding.unsqueeze(-1).type_as(x)), padding, padding


def _future(x: Tensor) -> Tensor:
    """What is added to scores of states ``[T, B, D]``: minus infinity at later positions."""
    size = (x.size(0), x.size(0))
    return torch.full(size, -torch.inf, dtype=x.dtype, device=x.device).triu(1)


class TransformerDecoder(_Side):
    """Target tokens and a memory to vectors, and those to logits.

    The interface is that of :class:`hyptrans.seq2seq.decoder.Decoder`.
    """

    def __init__(
        self, cfg: Any, side: Side, words: Words, table: nn.Embedding, memory_width: int
    ) -> None:
        super().__init__(cfg, side, words, table)
        before, out = cfg.decoder_normalize_before, cfg.decoder_output_dim or side.width
        for _ in range(side.layers):
            self.layers.append(DecoderLayer(cfg, side, memory_width, before=before))
        if before and not cfg.no_decoder_final_norm:
            self.layer_norm = nn.LayerNorm(side.width)
        self.project_out_dim = None
        if out != side.width:
            self.project_out_dim = nn.Linear(side.width, out, bias=False)
        self.output_projection = nn.Linear(out, len(words), bias=False)
        if cfg.share_decoder_input_output_embed or cfg.share_all_embeddings:
            self.output_projection.weight = table.weight

    def start(self) -> TransformerState:
        """A state before the first token."""
        return TransformerState([Step(layer) for layer in self.layers])

    def forward(
        self, tokens: Tensor, memory: Tensor, padding: Tensor, state: TransformerState | None = None
    ) -> tuple[list[Tensor], None]:
        """The states ``[B, T, D]``, the embeddings first; as :class:`Decoder` has them."""
        if state is None:
            return self._run(tokens, memory, padding)[0], None
        if state.padded is None:
            (state.padded,) = any_of(padding)
        masked = padding[:, None, None, None] if state.padded else None
        x = self.embed(tokens[:, -1:], tokens.eq(self.padding_idx)).squeeze(1)
        source, states = memory.transpose(0, 1), [x]
        for step in state.steps:
            states.append(step(states[-1], source, masked))
        states[-1] = self.last(states[-1])
        # laid out as fairseq's, whose logits are then a product for each row, with other digits
        return [one[None].transpose(0, 1) for one in states], None

    def _run(
        self, tokens: Tensor, memory: Tensor, padding: Tensor
    ) -> tuple[list[Tensor], list[Tensor]]:
        """The states, and what asks of the source in each layer, ``[T, B, D]``."""
        own = tokens.eq(self.padding_idx)
        x = self.embed(tokens, own).transpose(0, 1)
        source, states, future = memory.transpose(0, 1), [x], _future(x)
        asked: list[Tensor] = []
        mask = None
        if any_of(own)[0]:
            mask = torch.zeros_like(own, dtype=x.dtype).masked_fill(own, -torch.inf)
        for layer in self.layers:
            x, query = layer(states[-1], mask, future, source, padding)
            states.append(x)
            asked.append(query)
        states[-1] = self.last(states[-1])
        return [one.transpose(0, 1) for one in states], asked

    def look(self, tokens: Tensor, memory: Tensor, padding: Tensor) -> Tensor:
        """The last layer's weights on the source, a mean over heads, ``[B, T, S]``."""
        _, asked = self._run(tokens, memory, padding)
        attention: Attention = self.layers[-1].encoder_attn
        return attention.look(asked[-1], memory.transpose(0, 1), padding).mean(1)

    def attentions(
        self, tokens: Tensor, memory: Tensor, padding: Tensor
    ) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        """The states, and the weights of each layer on the target ``[B, H, T, T]`` and source."""
        states, asked = self._run(tokens, memory, padding)
        own, source = tokens.eq(self.padding_idx), memory.transpose(0, 1)
        each, mask = [x.transpose(0, 1) for x in states[:-1]], _future(states[0].transpose(0, 1))
        return (
            states,
            [layer.look(x, own, mask) for layer, x in zip(self.layers, each, strict=True)],
            [
                layer.encoder_attn.look(x, source, padding)
                for layer, x in zip(self.layers, asked, strict=True)
            ],
        )

    def logits(self, x: Tensor, state: Any = None) -> Tensor:
        """Logits ``[B, T, V]`` of the last states."""
        out: Tensor = x if self.project_out_dim is None else self.project_out_dim(x)
        return self.output_projection(out)

    def predict(
        self, tokens: Tensor, memory: Tensor, padding: Tensor, state: TransformerState | None = None
    ) -> Tensor:
        """Logits ``[B, T, V]``; the arguments are those of :meth:`forward`."""
        return self.logits(self(tokens, memory, padding, state)[0][-1])


class Transformer(EncoderDecoder):
    """The model of a configuration of fairseq's Transformer."""

    @classmethod
    def of(cls, cfg: Any, source: Words, target: Words) -> "Transformer":
        """Build it for dictionaries.

        Raises:
            ValueError: options that do not go together.
        """
        encoder, decoder = side_of(cfg, "encoder"), side_of(cfg, "decoder")
        table = nn.Embedding(len(source), encoder.width, source.pad())
        first = TransformerEncoder(cfg, encoder, source, table)
        if cfg.share_all_embeddings:
            check_shareable(source, target, encoder, decoder)
        else:
            table = nn.Embedding(len(target), decoder.width, target.pad())
        return cls(first, TransformerDecoder(cfg, decoder, target, table, encoder.width))

    def load_state_dict(self, state_dict: Mapping[str, Any], *args: Any, **options: Any) -> Any:
        """Load what a file has; fairseq's copies and what it computes are left out."""
        learned = {k: v for k, v in state_dict.items() if not _NOT_LEARNED.fullmatch(k)}
        check_shared(self, learned)
        return nn.Module.load_state_dict(self, {**learned, "version": self.version}, **options)
