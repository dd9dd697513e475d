"""The Transformer with fairseq's names of parameters, and its numbers to the last digit.

Its calls of torch are those that fairseq's make, with the same shapes: in evaluation, an encoder
that normalizes after its blocks is torch's fused one.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
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

ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "tanh": torch.tanh,
    "linear": lambda x: x,
}
_NOT_LEARNED = re.compile(
    r"(encoder|decoder)\.(version|embed_positions\.(weights|_float_tensor))|version|"
    r"encoder\.layers\.\d+\.(in_proj|out_proj|fc1|fc2)_(weight|bias)"
)
"""Of a file: versions, sinusoids and weights that fairseq's encoder layer keeps a second time."""


@dataclass
class _Kept:
    """What an attention keeps between steps: keys and values ``[B H, S, d]``."""

    key: Tensor | None = None
    value: Tensor | None = None
    rows: int = 0

    def reorder(self, order: Tensor) -> None:
        if self.key is None or self.value is None:
            return
        self.key, self.value = (
            t.unflatten(0, (self.rows, -1)).index_select(0, order).flatten(0, 1)
            for t in (self.key, self.value)
        )
        self.rows = order.size(0)


@dataclass
class TransformerState:
    """What the decoder keeps between steps, two for each layer: of earlier tokens, of the source.

    Attributes:
        attention: with a row for each hypothesis.
        cross_attention: with a row for each hypothesis, too.
    """

    attention: list[_Kept]
    cross_attention: list[_Kept]
    logits: Any = field(default=None)

    def reorder(self, new_order: Tensor, sentences: Tensor | None = None) -> None:
        """Let hypothesis ``i`` be what ``new_order[i]`` was; with ``sentences``, some are left."""
        for kept in self.attention:
            kept.reorder(new_order)
        if sentences is not None:
            for kept in self.cross_attention:
                kept.reorder(new_order)


class Attention(nn.Module):
    """Multi-head attention: dot products by ``sqrt(d)``, softmax, a map of the joined heads.

    Shapes: x ``[T, B, D]``, memory ``[S, B, D']``, padding ``[B, S]`` -> ``[T, B, D]``.
    """

    def __init__(self, width: int, heads: int, memory_width: int | None = None) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"a width of {width} is not divisible by {heads} attention heads")
        self.heads = heads
        self.k_proj = nn.Linear(memory_width or width, width)
        self.v_proj = nn.Linear(memory_width or width, width)
        self.q_proj = nn.Linear(width, width)
        self.out_proj = nn.Linear(width, width)

    def whole(self, x: Tensor, padding: Tensor | None, mask: Tensor | None) -> Tensor:
        """Attend to the sentence itself, all of which is given."""
        biases = torch.cat([self.q_proj.bias, self.k_proj.bias, self.v_proj.bias])
        out, _ = F.multi_head_attention_forward(
            *(x, x, x, x.size(-1), self.heads, None, biases, None, None, False, 0.0),
            *(self.out_proj.weight, self.out_proj.bias),
            training=False,
            key_padding_mask=padding,
            need_weights=False,
            attn_mask=mask,
            use_separate_proj_weight=True,
            q_proj_weight=self.q_proj.weight,
            k_proj_weight=self.k_proj.weight,
            v_proj_weight=self.v_proj.weight,
        )
        return out

    def step(self, x: Tensor, kept: _Kept) -> Tensor:
        """Attend to what is kept and to the new position, which is then kept, too."""
        key, value = self._heads(self.k_proj(x)), self._heads(self.v_proj(x))
        if kept.key is not None and kept.value is not None:
            key, value = torch.cat([kept.key, key], 1), torch.cat([kept.value, value], 1)
        kept.key, kept.value, kept.rows = key, value, x.size(1)
        return self._mix(x, key, value, None)

    def cross(
        self, x: Tensor, memory: Tensor, padding: Tensor, kept: _Kept | None = None
    ) -> Tensor:
        """Attend to a memory, whose keys and values are kept."""
        kept = _Kept() if kept is None else kept
        if kept.key is None or kept.value is None:
            # every hypothesis has its own, as in fairseq: the numbers follow the shapes
            beams = x.size(1) // memory.size(1)
            memory = memory.repeat_interleave(beams, 1) if beams > 1 else memory
            kept.key = self._heads(self.k_proj(memory))
            kept.value, kept.rows = self._heads(self.v_proj(memory)), x.size(1)
        padding = padding.repeat_interleave(x.size(1) // padding.size(0), 0)
        return self._mix(x, kept.key, kept.value, padding)

    def _heads(self, x: Tensor) -> Tensor:
        """``[T, B, D]`` -> ``[B H, T, d]``."""
        length, rows, width = x.shape
        return x.view(length, rows * self.heads, width // self.heads).transpose(0, 1)

    def _mix(self, x: Tensor, key: Tensor, value: Tensor, padding: Tensor | None) -> Tensor:
        mixed = torch.bmm(self._weights(x, key, padding), value)
        return self.out_proj(mixed.transpose(0, 1).reshape(x.shape))

    def look(
        self, x: Tensor, memory: Tensor, padding: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        """The weights on a memory, ``[B, H, T, S]``; ``mask`` ``[T, S]`` is added."""
        found = self._weights(x, self._heads(self.k_proj(memory)), padding, mask)
        return found.unflatten(0, (-1, self.heads))

    def _weights(
        self, x: Tensor, key: Tensor, padding: Tensor | None, mask: Tensor | None = None
    ) -> Tensor:
        query = self._heads(self.q_proj(x) * (x.size(-1) // self.heads) ** -0.5)
        scores = torch.bmm(query, key.transpose(1, 2))
        scores = scores if mask is None else scores + mask
        if padding is not None:
            each = scores.view(padding.size(0), self.heads, *scores.shape[1:])
            scores = each.masked_fill(padding[:, None, None], -torch.inf).view_as(scores)
        return torch.softmax(scores, -1)


class _Layer(nn.Module):
    """What layers of encoder and decoder share: self-attention, feed-forward, residuals, norms."""

    def __init__(self, cfg: Any, side: Side, *, before: bool) -> None:
        super().__init__()
        self.before, self.activation = before, ACTIVATIONS[cfg.activation_fn]
        self.self_attn = Attention(side.width, side.heads)
        self.self_attn_layer_norm = nn.LayerNorm(side.width)
        self.fc1 = nn.Linear(side.width, side.ffn_width)
        self.fc2 = nn.Linear(side.ffn_width, side.width)
        self.final_layer_norm = nn.LayerNorm(side.width)

    def block(self, x: Tensor, update: Callable[[Tensor], Tensor], norm: nn.Module) -> Tensor:
        """A residual block with its norm."""
        if self.before:
            return x + update(norm(x))
        out: Tensor = norm(x + update(x))
        return out

    def look(self, x: Tensor, padding: Tensor, mask: Tensor | None = None) -> Tensor:
        """The weights of self-attention, ``[B, H, T, T]``."""
        x = self.self_attn_layer_norm(x) if self.before else x
        return self.self_attn.look(x, x, padding, mask)

    def feed_forward(self, x: Tensor) -> Tensor:
        inner = lambda x: self.fc2(self.activation(self.fc1(x)))  # noqa: E731
        return self.block(x, inner, self.final_layer_norm)


class EncoderLayer(_Layer):
    """Self-attention and feed-forward."""

    def forward(self, x: Tensor, padding: Tensor | None) -> Tensor:
        look = lambda x: self.self_attn.whole(x, padding, None)  # noqa: E731
        return self.feed_forward(self.block(x, look, self.self_attn_layer_norm))

    def fused(self, x: Tensor, padding: Tensor | None) -> Tensor:
        """The layer as one call of torch, for norms after the blocks: ``[B, T, D]``."""
        attention, first, last = self.self_attn, self.self_attn_layer_norm, self.final_layer_norm
        maps = (attention.q_proj, attention.k_proj, attention.v_proj)
        arguments: list[Any] = [x, first.weight.numel(), attention.heads]
        arguments += [
            torch.cat([getattr(one, kind) for one in maps]) for kind in ("weight", "bias")
        ]
        arguments += [attention.out_proj.weight, attention.out_proj.bias, False, False, first.eps]
        for one in (first, last, self.fc1, self.fc2):
            arguments += [one.weight, one.bias]
        # the kind of mask: padding [B, T]
        arguments += [padding, None if padding is None else 1]
        return torch._transformer_encoder_layer_fwd(*arguments)


class DecoderLayer(_Layer):
    """Self-attention, attention to the source, feed-forward."""

    def __init__(self, cfg: Any, side: Side, memory_width: int, *, before: bool) -> None:
        super().__init__(cfg, side, before=before)
        self.encoder_attn = Attention(side.width, side.heads, memory_width)
        self.encoder_attn_layer_norm = nn.LayerNorm(side.width)

    def forward(
        self,
        x: Tensor,
        look: Callable[[Tensor], Tensor],
        look_at_source: Callable[[Tensor], Tensor],
    ) -> Tensor:
        x = self.block(x, look, self.self_attn_layer_norm)
        return self.feed_forward(self.block(x, look_at_source, self.encoder_attn_layer_norm))


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

    def forward(self, padding: Tensor) -> Tensor:
        """Padding ``[B, T]``, true there -> ``[B, T, D]``."""
        places = token_positions(padding, self.longest)
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
            x = x + self.embed_positions(padding)[:, -tokens.size(1) :]
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
        kept = [[_Kept() for _ in self.layers] for _ in range(2)]
        return TransformerState(*kept)

    def forward(
        self, tokens: Tensor, memory: Tensor, padding: Tensor, state: TransformerState | None = None
    ) -> tuple[list[Tensor], None]:
        """The states ``[B, T, D]``, the embeddings first; as :class:`Decoder` has them."""
        return self._run(tokens, memory, padding, state)[0], None

    def _run(
        self, tokens: Tensor, memory: Tensor, padding: Tensor, state: TransformerState | None
    ) -> tuple[list[Tensor], list[Tensor]]:
        """The states, and what asks of the source in each layer, ``[T, B, D]``."""
        own = tokens.eq(self.padding_idx)
        x = self.embed(tokens if state is None else tokens[:, -1:], own).transpose(0, 1)
        source, states, future = memory.transpose(0, 1), [x], None
        asked: list[Tensor] = []
        if state is None:
            future = _future(x)
        mask = None
        if state is None and any_of(own)[0]:
            mask = torch.zeros_like(own, dtype=x.dtype).masked_fill(own, -torch.inf)
        for i, layer in enumerate(self.layers):
            kept = (None, None) if state is None else (state.attention[i], state.cross_attention[i])

            def look(x: Tensor, layer: Any = layer, kept: Any = kept[0]) -> Tensor:
                attention: Attention = layer.self_attn
                return attention.whole(x, mask, future) if kept is None else attention.step(x, kept)

            def look_at_source(x: Tensor, layer: Any = layer, kept: Any = kept[1]) -> Tensor:
                asked.append(x)
                found: Tensor = layer.encoder_attn.cross(x, source, padding, kept)
                return found

            states.append(layer(states[-1], look, look_at_source))
        states[-1] = self.last(states[-1])
        return [one.transpose(0, 1) for one in states], asked

    def look(self, tokens: Tensor, memory: Tensor, padding: Tensor) -> Tensor:
        """The last layer's weights on the source, a mean over heads, ``[B, T, S]``."""
        _, asked = self._run(tokens, memory, padding, None)
        attention: Attention = self.layers[-1].encoder_attn
        return attention.look(asked[-1], memory.transpose(0, 1), padding).mean(1)

    def attentions(
        self, tokens: Tensor, memory: Tensor, padding: Tensor
    ) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        """The states, and the weights of each layer on the target ``[B, H, T, T]`` and source."""
        states, asked = self._run(tokens, memory, padding, None)
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
