"""The Transformer's attention and layers, for sentences all of which are given."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hyptrans.seq2seq.sizes import Side

ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "tanh": torch.tanh,
    "linear": lambda x: x,
}


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
