"""The Transformer with fairseq's names of parameters, and its numbers to the last digit.

Its calls of torch are those that fairseq's make, with the same shapes: in evaluation, an encoder
that normalizes after its blocks is torch's fused one.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
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
class TransformerState:
    """What the decoder keeps between steps.

    Attributes:
        steps: the layers, as one token after another goes through them.
        padded: whether the source had padding at the first step.
    """

    steps: list["_Step"]
    padded: bool | None = None
    logits: Any = None

    def reorder(self, new_order: Tensor, sentences: Tensor | None = None) -> None:
        """Let hypothesis ``i`` be what ``new_order[i]`` was; with ``sentences``, some are left."""
        for step in self.steps:
            step.reorder(new_order, some_left=sentences is not None)


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

    def cross(self, x: Tensor, memory: Tensor, padding: Tensor) -> Tensor:
        """Attend to a memory."""
        key, value = self._heads(self.k_proj(memory)), self._heads(self.v_proj(memory))
        mixed = torch.bmm(self._weights(x, key, padding), value)
        return self.out_proj(mixed.transpose(0, 1).reshape(x.shape))

    def _heads(self, x: Tensor) -> Tensor:
        """``[T, B, D]`` -> ``[B H, T, d]``."""
        length, rows, width = x.shape
        return x.view(length, rows * self.heads, width // self.heads).transpose(0, 1)

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
        self, x: Tensor, mask: Tensor | None, future: Tensor, source: Tensor, padding: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The layer's states, and what asks of the source, ``[T, B, D]``."""
        look = lambda x: self.self_attn.whole(x, mask, future)  # noqa: E731
        x = self.block(x, look, self.self_attn_layer_norm)
        asked = self.encoder_attn_layer_norm(x) if self.before else x
        x = x + self.encoder_attn.cross(asked, source, padding)
        return self.feed_forward(x if self.before else self.encoder_attn_layer_norm(x)), asked


Map = Callable[[Tensor], Tensor]


class _Step:
    """A decoder layer for one token after another; its parameters are looked up once.

    Keys and values are ``[S, B, D]`` and rows ``[B, D]``: with a row for each hypothesis, those of
    the source too, as in fairseq: the numbers follow the shapes.
    """

    def __init__(self, layer: DecoderLayer) -> None:
        own, cross = layer.self_attn, layer.encoder_attn
        self.own, self.cross = (
            _maps(one.q_proj, one.k_proj, one.v_proj, one.out_proj) for one in (own, cross)
        )
        self.feed_forward = _maps(layer.fc1, layer.fc2)
        norms = (layer.self_attn_layer_norm, layer.encoder_attn_layer_norm, layer.final_layer_norm)
        self.norms = [_norm(one) for one in norms]
        self.before, self.activation, self.heads = layer.before, layer.activation, own.heads
        self.past: list[Tensor] = []
        self.source: list[Tensor] = []
        self.order: Tensor | None = None
        """What :attr:`past` is to be reordered by, together with the next extension."""

    def reorder(self, order: Tensor, *, some_left: bool) -> None:
        """Let row ``i`` be what ``order[i]`` was; the source's, where only some are left."""
        if not self.past:
            return
        self.order = order if self.order is None else self.order.index_select(0, order)
        if some_left:
            self.source = [one.index_select(1, order) for one in self.source]

    def __call__(self, x: Tensor, memory: Tensor, padding: Tensor | None) -> Tensor:
        """One layer; memory ``[S, sentences, D]``, padding ``[sentences, 1, 1, 1, S]``."""
        asked = self.norms[0](x) if self.before else x
        new = [one(asked) for one in self.own[1:3]]
        if self.past:
            new = [self._extended(*one) for one in zip(self.past, new, strict=True)]
        else:
            new = [one[None] for one in new]
        self.past, self.order = new, None
        x = self._end(0, x, self._attend(asked, self.own, new, None))
        asked = self.norms[1](x) if self.before else x
        if not self.source:
            memory = memory.repeat_interleave(x.size(0) // memory.size(1), 1)
            self.source = [one(memory) for one in self.cross[1:3]]
        x = self._end(1, x, self._attend(asked, self.cross, self.source, padding))
        inner = self.feed_forward[0](self.norms[2](x) if self.before else x)
        return self._end(2, x, self.feed_forward[1](self.activation(inner)))

    def _extended(self, past: Tensor, new: Tensor) -> Tensor:
        if self.order is None:
            return torch.cat([past, new[None]])
        if torch.is_grad_enabled():
            return torch.cat([past.index_select(1, self.order), new[None]])
        # one pass over what may be the most of a step's memory
        made = new.new_empty(len(past) + 1, *new.shape)
        torch.index_select(past, 1, self.order, out=made[:-1])
        made[-1] = new
        return made

    def _attend(
        self, x: Tensor, maps: list[Map], kept: list[Tensor], padding: Tensor | None
    ) -> Tensor:
        rows, width = x.shape
        size = width // self.heads
        query = (maps[0](x) * size**-0.5).view(rows * self.heads, 1, size)
        key, value = (one.view(one.size(0), -1, size) for one in kept)
        scores = torch.bmm(query, key.permute(1, 2, 0))
        if padding is not None:
            each = scores.view(padding.size(0), -1, self.heads, 1, key.size(0))
            each.masked_fill_(padding, -torch.inf)
        mixed = torch.bmm(torch.softmax(scores, -1), value.transpose(0, 1))
        return maps[3](mixed.view(rows, width))

    def _end(self, norm: int, x: Tensor, update: Tensor) -> Tensor:
        """The end of a residual block."""
        return x + update if self.before else self.norms[norm](x + update)


def _maps(*layers: nn.Module) -> list[Map]:
    """What layers compute, without the way through a module where nothing was put on it."""
    return [
        partial(F.linear, weight=one.weight, bias=one.bias)
        if type(one) is nn.Linear and not _has_hooks(one)
        else one
        for one in layers
    ]


def _norm(layer: nn.Module) -> Map:
    if type(layer) is not nn.LayerNorm or _has_hooks(layer):
        return layer
    shape, others = layer.normalized_shape, (layer.weight, layer.bias, layer.eps)
    return lambda x: torch.layer_norm(x, shape, *others)


def _has_hooks(layer: nn.Module) -> bool:
    return bool(layer._forward_hooks or layer._forward_pre_hooks or "forward" in vars(layer))


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
        return TransformerState([_Step(layer) for layer in self.layers])

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
