"""The one encoder-decoder: tokens, padding, layers, decoding state; parts make an architecture."""

from collections.abc import Callable
from typing import Any

import torch
from fairseq.models import FairseqEncoder, FairseqEncoderDecoderModel, FairseqIncrementalDecoder
from torch import Tensor, nn

from hyptrans.geometry.space import Space
from hyptrans.layers.positions import token_positions
from hyptrans.models._config import add_switches, check_curvature, side_of
from hyptrans.models._decoding import STATE, DecoderState, IncrementalState, LayerState
from hyptrans.models._parts import Parts, Role
from hyptrans.models._sharing import check_shareable, check_shared
from hyptrans.models._version import KEY, check_version, this_version
from hyptrans.support.errors import UserError

EncoderOut = dict[str, list[Any]]
SENTENCES = "sentences"


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward."""

    def __init__(self, parts: Parts, before: nn.Module) -> None:
        super().__init__()
        self.attention = parts.attention(Role(), before=before)
        self.feed_forward = parts.feed_forward(before=self.attention)

    def forward(self, x: Tensor, padding: Tensor | None) -> Tensor:
        return self.feed_forward(self.attention(x, padding=padding))


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
        """The weights of every target position on the source ``[B, T, S]``, without a state."""
        x = self.attention(x, padding=padding)
        return self.cross_attention.look(x, memory, padding=memory_padding)


class Layered:
    """An encoder or decoder of layers, whose states are points."""

    embed_positions: Any
    layers: Any
    space_of: Callable[[Any], Space]

    def last_parts(self) -> list[nn.Module]:
        """The parts that the states come out of, the embeddings first."""
        return [self.embed_positions, *(layer.feed_forward for layer in self.layers)]

    def state_spaces(self) -> list[Space]:
        """The space of each of the states, as learned so far."""
        return [self.space_of(part) for part in self.last_parts()]


class Encoder(Layered, FairseqEncoder):
    """Source tokens to points.

    Returns what fairseq's transformer encoder returns: ``encoder_out`` and all ``encoder_states``
    (the embeddings first) are ``[T, B, D]``, ``encoder_padding_mask`` ``[B, T]`` is true at
    padding. Beside them ``sentences`` ``[B]`` says which sentence of the batch a row is of.
    """

    def __init__(self, parts: Parts, dictionary: Any, embedding: nn.Module) -> None:
        super().__init__(dictionary)
        self.padding_idx = dictionary.pad()
        self.max_source_positions = parts.side.max_positions
        self.embed_tokens = embedding
        self.embed_positions = parts.positions(before=embedding)
        self.layers = nn.ModuleList()
        for _ in range(parts.side.layers):
            self.layers.append(EncoderLayer(parts, before=self.last_parts()[-1]))
        self.space_of = parts.space

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
            SENTENCES: [torch.arange(len(padding), device=padding.device)],
        }

    def reorder_encoder_out(self, encoder_out: EncoderOut, new_order: Tensor) -> EncoderOut:
        # beam search asks at every step, and mostly moves hypotheses within their sentence
        for sentences in encoder_out.get(SENTENCES, []):
            if torch.equal(sentences.index_select(0, new_order), sentences):
                return encoder_out
        time_first = ("encoder_out", "encoder_states")
        return {
            name: [t.index_select(int(name in time_first), new_order) for t in tensors]
            for name, tensors in encoder_out.items()
        }

    def max_positions(self) -> int:
        return self.max_source_positions


class Decoder(Layered, FairseqIncrementalDecoder):
    """Target tokens and the encoder's output to logits ``[B, T, V]``, or to points.

    Beside them it returns what fairseq's transformer decoder does: ``inner_states``, the embeddings
    first, are ``[T, B, D]``. With an ``incremental_state`` only the last token is new; the rest is
    in its :class:`DecoderState`. Attention to the source, ``attn``, is given where ``need_attn`` of
    fairseq's ``make_generation_fast_`` asked for it, that of the last layer as a mean over heads.
    """

    gives_attention = False

    def __init__(
        self, parts: Parts, dictionary: Any, embedding: nn.Module, *, cross: Role, tied: bool
    ) -> None:
        super().__init__(dictionary)
        self.padding_idx = dictionary.pad()
        self.max_target_positions = parts.side.max_positions
        self.embed_tokens = embedding
        self.embed_positions = parts.positions(before=embedding)
        self.layers = nn.ModuleList()
        for _ in range(parts.side.layers):
            self.layers.append(DecoderLayer(parts, self.last_parts()[-1], cross))
        self.logits = parts.logits(
            len(dictionary),
            self.padding_idx,
            tied=embedding if tied else None,
            before=self.last_parts()[-1],
        )
        self.space_of = parts.space

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: EncoderOut | None = None,
        incremental_state: IncrementalState | None = None,
        features_only: bool = False,
        return_all_hiddens: bool = False,
        **_: Any,
    ) -> tuple[Tensor, dict[str, Any]]:
        state = None if incremental_state is None else self._state(incremental_state)
        x, states, attention = self._points(prev_output_tokens, encoder_out or {}, state)
        inner = [state.transpose(0, 1) for state in states] if return_all_hiddens else None
        extra = {"attn": [attention], "inner_states": inner}
        if not features_only:
            x = self.logits(x, None if state is None else state.logits)
        return x, extra

    def _state(self, incremental_state: IncrementalState) -> DecoderState:
        if STATE not in incremental_state:
            incremental_state[STATE] = DecoderState([LayerState() for _ in self.layers])
        return incremental_state[STATE]

    def _points(
        self,
        tokens: Tensor,
        encoder_out: EncoderOut,
        state: DecoderState | None,
    ) -> tuple[Tensor, list[Tensor], Tensor | None]:
        padding = tokens.eq(self.padding_idx)
        positions = token_positions(padding, self.max_target_positions)
        mask = None
        if state is not None:
            tokens, positions = tokens[:, -1:], positions[:, -1:]
        elif bool(padding[:, 0].any()):
            # padding on the right needs no mask: nothing real looks that far ahead
            mask = padding
        memory = encoder_out["encoder_out"][0].transpose(0, 1)
        memory_padding = encoder_out["encoder_padding_mask"][0]
        if state is not None:
            beams = state.beams(memory)
            memory, memory_padding = memory[::beams], memory_padding[::beams]
        memory_mask = memory_padding if bool(memory_padding.any()) else None

        x = self.embed_positions(self.embed_tokens(tokens), positions)
        states = [x]
        for i, layer in enumerate(self.layers):
            x = layer(x, mask, memory, memory_mask, None if state is None else state.layers[i])
            states.append(x)
        attention = None
        if self.gives_attention and state is None:
            attention = self.layers[-1].look(states[-2], mask, memory, memory_mask)
        return x, states, attention

    def make_generation_fast_(
        self, need_attn: bool = False, retain_dropout: bool = False, **_: Any
    ) -> None:
        """Take what fairseq's commands ask of a model that decodes.

        Raises:
            UserError: dropout is to be kept.
        """
        if retain_dropout:
            raise UserError("--retain-dropout is not of this architecture: leave it out")
        self.gives_attention = bool(need_attn)

    def extract_features(self, *args: Any, **kwargs: Any) -> tuple[Tensor, dict[str, Any]]:
        return self(*args, features_only=True, **kwargs)

    def output_layer(self, features: Tensor, **_: Any) -> Tensor:
        return self.logits(features)

    def reorder_incremental_state(
        self, incremental_state: IncrementalState, new_order: Tensor
    ) -> None:
        if incremental_state:
            self._state(incremental_state).reorder(new_order)

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
    version: Tensor
    # fairseq's question whether alignments need another pass, over the whole translation
    full_context_alignment = property(lambda self: self.decoder.gives_attention)

    def __init__(self, encoder: Encoder, decoder: Decoder) -> None:
        super().__init__(encoder, decoder)
        self.register_buffer(KEY, this_version())

    def upgrade_state_dict(self, state_dict: Any) -> None:
        """Look at the parameters of a checkpoint before they are loaded.

        Raises:
            UserError: another version of this package wrote it.
        """
        check_version(state_dict)
        super().upgrade_state_dict(state_dict)

    def load_state_dict(self, state_dict: Any, strict: bool = True, **options: Any) -> Any:
        """Load the parameters of a checkpoint; they are then of this version.

        Raises:
            UserError: parameters differ that the model shares.
        """
        if not strict:
            # fairseq's moving averages leave the version out
            state_dict = {KEY: self.version, **state_dict}
        check_shared(self, state_dict)
        loaded = super().load_state_dict(state_dict, strict, **options)
        self.version.copy_(this_version())
        return loaded

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
        check_curvature(cfg)
        source, target = task.source_dictionary, task.target_dictionary
        encoder_parts = cls.parts(cfg, side_of(cfg, "encoder"))
        embedding = encoder_parts.embedding(len(source), source.pad())
        encoder = Encoder(encoder_parts, source, embedding)
        decoder_parts = cls.parts(cfg, side_of(cfg, "decoder"))
        if cfg.share_all_embeddings:
            check_shareable(source, target, encoder_parts.side, decoder_parts.side)
        else:
            embedding = decoder_parts.embedding(len(target), target.pad())
        decoder = Decoder(
            decoder_parts,
            target,
            embedding,
            cross=Role(memory=encoder.last_parts()[-1], memory_width=encoder_parts.side.width),
            tied=cfg.share_all_embeddings or cfg.share_decoder_input_output_embed,
        )
        return cls(encoder, decoder)
