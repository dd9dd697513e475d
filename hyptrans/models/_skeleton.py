"""The one encoder-decoder: tokens, padding, layers, decoding state; parts make an architecture."""

from abc import ABC, abstractmethod
from typing import Any

import torch
from fairseq.models import FairseqEncoder, FairseqEncoderDecoderModel, FairseqIncrementalDecoder
from torch import Tensor, nn

from hyptrans.geometry.space import Space
from hyptrans.layers import decoding_state
from hyptrans.layers.attention import Attention
from hyptrans.layers.decoding_state import State
from hyptrans.models._beams import beams_of, sentence_rows
from hyptrans.models._config import Side, add_switches, side_of

IncrementalState = dict[str, State]
"""States by name: each attention's, and the output layer's."""
LOGITS = "logits"
"""The output layer's state is the same for all hypotheses."""
CROSS = "cross_attention"
"""These attentions keep one row for all hypotheses of a sentence."""
EncoderOut = dict[str, list[Any]]


class Parts(ABC):
    """What an architecture puts into one side, encoder or decoder, of the skeleton.

    All states between the parts are ``[B, T, side.width]``, points of the architecture's space. A
    sublayer owns its residual, as some architectures add it inside their last linear map. The
    skeleton asks for the parts in the order in which the data meets them.

    Args:
        cfg: the architecture's configuration.
        side: sizes of the encoder or of the decoder.
        source: the encoder's parts, for the decoder; they have been asked for already.

    Raises:
        ValueError: the width is not divisible by the number of heads.
    """

    def __init__(self, cfg: Any, side: Side, source: Any = None) -> None:
        if side.width % side.heads:
            raise ValueError(
                f"--{side.name}-embed-dim {side.width} is not divisible by "
                f"--{side.name}-attention-heads {side.heads}"
            )
        self.cfg, self.side, self.source = cfg, side, source

    @abstractmethod
    def embedding(self, num_embeddings: int, padding_idx: int) -> nn.Module:
        """Tokens ``[B, T]`` -> points."""

    @abstractmethod
    def positions(self) -> nn.Module:
        """Points and positions ``[B, T]`` (from 0) -> points."""

    @abstractmethod
    def self_attention(self, *, causal: bool) -> Attention:
        """Points -> points; ``causal`` in the decoder."""

    @abstractmethod
    def cross_attention(self) -> Attention:
        """Points and the output of ``source`` -> points."""

    @abstractmethod
    def feed_forward(self) -> nn.Module:
        """Points -> points."""

    @abstractmethod
    def logits(self, num_embeddings: int, padding_idx: int, tied: Any) -> nn.Module:
        """Points -> ``[B, T, num_embeddings]``; ``tied``: the input embedding to share or None.

        Called with a second argument, a state or None, in which it may keep what does not change
        while a batch is decoded.
        """

    @abstractmethod
    def space(self, part: Any) -> Space:
        """The space of what comes out of a part: of the positions or of a feed-forward."""


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward."""

    def __init__(self, parts: Parts) -> None:
        super().__init__()
        self.attention = parts.self_attention(causal=False)
        self.feed_forward = parts.feed_forward()

    def forward(self, x: Tensor, padding: Tensor | None) -> Tensor:
        return self.feed_forward(self.attention(x, padding=padding))


class DecoderLayer(nn.Module):
    """Causal self-attention, attention to the source, feed-forward."""

    def __init__(self, parts: Parts) -> None:
        super().__init__()
        self.attention = parts.self_attention(causal=True)
        self.cross_attention = parts.cross_attention()
        self.feed_forward = parts.feed_forward()

    def forward(
        self,
        x: Tensor,
        padding: Tensor | None,
        memory: Tensor,
        memory_padding: Tensor | None,
        state: State | None,
        cross_state: State | None,
    ) -> Tensor:
        x = self.attention(x, padding=padding, state=state)
        x = self.cross_attention(x, memory, padding=memory_padding, state=cross_state)
        return self.feed_forward(x)


class Encoder(FairseqEncoder):
    """Source tokens to points.

    Returns what fairseq's transformer encoder returns: ``encoder_out`` and all ``encoder_states``
    (the embeddings first) are ``[T, B, D]``, ``encoder_padding_mask`` ``[B, T]`` is true at
    padding.
    """

    def __init__(self, parts: Parts, dictionary: Any, embedding: nn.Module) -> None:
        super().__init__(dictionary)
        self.padding_idx = dictionary.pad()
        self.max_source_positions = parts.side.max_positions
        self.embed_tokens = embedding
        self.embed_positions = parts.positions()
        self.layers = nn.ModuleList(EncoderLayer(parts) for _ in range(parts.side.layers))
        self.space_of = parts.space

    def state_spaces(self) -> list[Space]:
        """The space of each of ``encoder_states``, as learned so far."""
        last_parts = [self.embed_positions, *(layer.feed_forward for layer in self.layers)]
        return [self.space_of(part) for part in last_parts]

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor | None = None,
        return_all_hiddens: bool = False,
        **_: Any,
    ) -> EncoderOut:
        padding = src_tokens.eq(self.padding_idx)
        mask = padding if bool(padding.any()) else None
        embedded = self.embed_tokens(src_tokens)
        x = self.embed_positions(embedded, token_positions(padding, self.max_source_positions))
        states = [x]
        for layer in self.layers:
            x = layer(x, mask)
            states.append(x)
        return {
            "encoder_out": [x.transpose(0, 1)],
            "encoder_padding_mask": [padding],
            "encoder_embedding": [embedded],
            "encoder_states": [s.transpose(0, 1) for s in states] if return_all_hiddens else [],
            "src_tokens": [],
            "src_lengths": [],
        }

    def reorder_encoder_out(self, encoder_out: EncoderOut, new_order: Tensor) -> EncoderOut:
        time_first = ("encoder_out", "encoder_states")
        return {
            name: [t.index_select(int(name in time_first), new_order) for t in tensors]
            for name, tensors in encoder_out.items()
        }

    def max_positions(self) -> int:
        return self.max_source_positions


class Decoder(FairseqIncrementalDecoder):
    """Target tokens and the encoder's output to logits ``[B, T, V]``, or to points.

    With an ``incremental_state`` only the last token is new; each attention keeps its state there,
    under a key of its own, batch first.
    """

    def __init__(self, parts: Parts, dictionary: Any, embedding: nn.Module, *, tied: bool) -> None:
        super().__init__(dictionary)
        self.padding_idx = dictionary.pad()
        self.max_target_positions = parts.side.max_positions
        self.embed_tokens = embedding
        self.embed_positions = parts.positions()
        self.layers = nn.ModuleList(DecoderLayer(parts) for _ in range(parts.side.layers))
        self.logits = parts.logits(len(dictionary), self.padding_idx, embedding if tied else None)

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: EncoderOut | None = None,
        incremental_state: IncrementalState | None = None,
        features_only: bool = False,
        return_all_hiddens: bool = False,
        **_: Any,
    ) -> tuple[Tensor, dict[str, Any]]:
        x, states = self._points(prev_output_tokens, encoder_out or {}, incremental_state)
        extra = {"attn": [None], "inner_states": states if return_all_hiddens else None}
        if not features_only:
            x = self.logits(x, _state(incremental_state, LOGITS))
        return x, extra

    def _points(
        self,
        tokens: Tensor,
        encoder_out: EncoderOut,
        incremental_state: IncrementalState | None,
    ) -> tuple[Tensor, list[Tensor]]:
        padding = tokens.eq(self.padding_idx)
        positions = token_positions(padding, self.max_target_positions)
        mask = None
        if incremental_state is not None:
            tokens, positions = tokens[:, -1:], positions[:, -1:]
        elif bool(padding[:, 0].any()):
            # padding on the right needs no mask: nothing real looks that far ahead
            mask = padding
        memory = encoder_out["encoder_out"][0].transpose(0, 1)
        memory_padding = encoder_out["encoder_padding_mask"][0]
        if incremental_state is not None:
            beams = _beams(memory, incremental_state.get(f"layers.0.{CROSS}"))
            memory, memory_padding = memory[::beams], memory_padding[::beams]
        memory_mask = memory_padding if bool(memory_padding.any()) else None

        x = self.embed_positions(self.embed_tokens(tokens), positions)
        states = [x]
        for i, layer in enumerate(self.layers):
            own = _state(incremental_state, f"layers.{i}.attention")
            cross = _state(incremental_state, f"layers.{i}.{CROSS}")
            x = layer(x, mask, memory, memory_mask, own, cross)
            states.append(x)
        return x, states

    def extract_features(self, *args: Any, **kwargs: Any) -> tuple[Tensor, dict[str, Any]]:
        return self(*args, features_only=True, **kwargs)

    def output_layer(self, features: Tensor, **_: Any) -> Tensor:
        return self.logits(features)

    def reorder_incremental_state(
        self, incremental_state: IncrementalState, new_order: Tensor
    ) -> None:
        if not incremental_state:
            return
        hypotheses, sentences = (
            decoding_state.hypotheses(incremental_state[f"layers.0.{name}"])
            for name in ("attention", CROSS)
        )
        rows = sentence_rows(new_order, hypotheses // sentences)
        moved = not torch.equal(rows, torch.arange(sentences, device=rows.device))
        for key, state in incremental_state.items():
            if not key.endswith((CROSS, LOGITS)):
                decoding_state.reorder(state, new_order)
            elif key.endswith(CROSS) and moved:
                decoding_state.reorder(state, rows)

    def reorder_incremental_state_scripting(
        self, incremental_state: IncrementalState, new_order: Tensor
    ) -> None:
        # fairseq's asks every module, one by one; here the decoder itself knows all states
        self.reorder_incremental_state(incremental_state, new_order)

    def max_positions(self) -> int:
        return self.max_target_positions


class HypTransformer(FairseqEncoderDecoderModel):
    """An encoder-decoder made of an architecture's parts; a subclass names them.

    Example:
        ``fairseq-train data-bin --user-dir hyptrans --arch hybonet_base …``
    """

    parts: type[Parts]

    @classmethod
    def add_args(cls, parser: Any) -> None:
        add_switches(parser)
        super().add_args(parser)

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> "HypTransformer":
        """Build encoder and decoder for a task's dictionaries.

        Raises:
            ValueError: options that do not go together, each named.
        """
        source, target = task.source_dictionary, task.target_dictionary
        encoder_parts = cls.parts(cfg, side_of(cfg, "encoder"))
        embedding = encoder_parts.embedding(len(source), source.pad())
        encoder = Encoder(encoder_parts, source, embedding)
        decoder_parts = cls.parts(cfg, side_of(cfg, "decoder"), encoder_parts)
        if cfg.share_all_embeddings:
            _check_shareable(source, target, encoder_parts.side, decoder_parts.side)
        else:
            embedding = decoder_parts.embedding(len(target), target.pad())
        decoder = Decoder(
            decoder_parts,
            target,
            embedding,
            tied=cfg.share_all_embeddings or cfg.share_decoder_input_output_embed,
        )
        return cls(encoder, decoder)


def token_positions(padding: Tensor, longest: int) -> Tensor:
    """Number of real tokens before each position, whichever side the padding is on.

    Shapes: padding ``[B, T]``, true at padding -> ``[B, T]``.

    Raises:
        ValueError: a sentence has more than ``longest`` tokens.
    """
    # a row has at most as many tokens as columns, so most batches need no look at the values
    if padding.size(1) > longest and int((~padding).sum(1).max()) > longest:
        raise ValueError(
            f"a sentence has {int((~padding).sum(1).max())} tokens, the model takes {longest}: "
            "raise --max-source-positions or --max-target-positions, or leave it out"
        )
    return (torch.cumsum(~padding, dim=1) - 1).clamp_min(0)


def _beams(memory: Tensor, cross_state: State | None) -> int:
    """Hypotheses to a row of the cross-attention's state, which the first step decides."""
    if not cross_state:
        return beams_of(memory)
    return len(memory) // decoding_state.hypotheses(cross_state)


def _state(incremental_state: IncrementalState | None, name: str) -> State | None:
    return None if incremental_state is None else incremental_state.setdefault(name, {})


def _check_shareable(source: Any, target: Any, encoder: Side, decoder: Side) -> None:
    if source != target:
        raise ValueError(
            "--share-all-embeddings needs one dictionary for both languages: "
            "prepare the data with --joined-dictionary"
        )
    if encoder.width != decoder.width:
        raise ValueError(
            "--share-all-embeddings needs --decoder-embed-dim to equal --encoder-embed-dim, "
            f"got {decoder.width} and {encoder.width}"
        )
