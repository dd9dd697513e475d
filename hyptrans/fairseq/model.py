"""The encoder-decoder and its loss in tiles behind fairseq's interface."""

import argparse
import dataclasses
import math
from collections.abc import Callable
from enum import Enum
from typing import Any

import torch
from fairseq.criterions import register_criterion
from fairseq.criterions.label_smoothed_cross_entropy import (
    LabelSmoothedCrossEntropyCriterion,
    LabelSmoothedCrossEntropyCriterionConfig,
)
from fairseq.models import FairseqEncoder, FairseqEncoderDecoderModel, FairseqIncrementalDecoder
from torch import Tensor, nn

from hyptrans.kernels.products import label_smoothed_cross_entropy
from hyptrans.seq2seq.model import EncoderDecoder
from hyptrans.seq2seq.parts import Parts
from hyptrans.seq2seq.stacks import Decoder, DecoderState, Encoder
from hyptrans.seq2seq.version import check_version
from hyptrans.support.errors import UserError
from hyptrans.support.options import add_option

EncoderOut = dict[str, list[Any]]
SENTENCES = "sentences"
IncrementalState = dict[str, DecoderState]
STATE = "decoder"
"""The key of the decoder's state in fairseq's dictionary of states."""


class HypEncoder(Encoder, FairseqEncoder):
    """:class:`Encoder` with a dictionary, for fairseq.

    Returns what fairseq's transformer encoder returns: ``encoder_out`` and all ``encoder_states``
    (the embeddings first) are ``[T, B, D]``, ``encoder_padding_mask`` ``[B, T]`` is true at
    padding. In addition, ``sentences`` ``[B]`` holds each row's sentence in the batch.
    """

    def forward(  # type: ignore[override]
        self,
        src_tokens: Tensor,
        src_lengths: Tensor | None = None,
        return_all_hiddens: bool = False,
        **_: Any,
    ) -> EncoderOut:
        embedded, states, padding = super().forward(src_tokens)
        return {
            "encoder_out": [states[-1].transpose(0, 1)],
            "encoder_padding_mask": [padding],
            "encoder_embedding": [embedded],
            "encoder_states": [s.transpose(0, 1) for s in states] if return_all_hiddens else [],
            "src_tokens": [],
            "src_lengths": [],
            SENTENCES: [torch.arange(len(padding), device=padding.device)],
        }

    def reorder_encoder_out(self, encoder_out: EncoderOut, new_order: Tensor) -> EncoderOut:
        # beam search calls this at every step and mostly moves hypotheses within a sentence
        for sentences in encoder_out.get(SENTENCES, []):
            if torch.equal(sentences.index_select(0, new_order), sentences):
                return encoder_out
        time_first = ("encoder_out", "encoder_states")
        return {
            name: [t.index_select(int(name in time_first), new_order) for t in tensors]
            for name, tensors in encoder_out.items()
        }

    def max_positions(self) -> int:
        return self.longest


class HypDecoder(Decoder, FairseqIncrementalDecoder):
    """:class:`Decoder` with a dictionary, for fairseq: returns logits ``[B, T, V]``, or points.

    It also returns what fairseq's transformer decoder does: ``inner_states``, the embeddings first,
    are ``[T, B, D]``. With an ``incremental_state`` only the last token is new; its
    :class:`DecoderState` holds the rest. After ``make_generation_fast_`` with ``need_attn``,
    ``attn`` is the last layer's attention to the source, averaged over heads.
    """

    gives_attention = False
    # attributes that the constructor of fairseq's decoders sets
    onnx_trace, adaptive_softmax = False, None

    def forward(  # type: ignore[override]
        self,
        prev_output_tokens: Tensor,
        encoder_out: EncoderOut | None = None,
        incremental_state: IncrementalState | None = None,
        features_only: bool = False,
        return_all_hiddens: bool = False,
        **_: Any,
    ) -> tuple[Tensor, dict[str, Any]]:
        state = None if incremental_state is None else self._state(incremental_state)
        source = encoder_out or {}
        memory, padding = source["encoder_out"][0], source["encoder_padding_mask"][0]
        memory = memory.transpose(0, 1)
        if state is not None:
            beams = _beams(state, memory)
            memory, padding = memory[::beams], padding[::beams]
        states = super().forward(prev_output_tokens, memory, padding, state)
        attention = None
        if self.gives_attention and state is None:
            attention = self.look(prev_output_tokens, states, memory, padding)
        inner = [state.transpose(0, 1) for state in states] if return_all_hiddens else None
        x = states[-1]
        if not features_only:
            x = self.logits(x, None if state is None else state.logits)
        return x, {"attn": [attention], "inner_states": inner}

    def _state(self, incremental_state: IncrementalState) -> DecoderState:
        if STATE not in incremental_state:
            incremental_state[STATE] = self.start()
        return incremental_state[STATE]

    def make_generation_fast_(
        self, need_attn: bool = False, retain_dropout: bool = False, **_: Any
    ) -> None:
        """Apply the options of fairseq's commands for decoding.

        Raises:
            UserError: ``retain_dropout`` is set.
        """
        if retain_dropout:
            raise UserError("this architecture does not support --retain-dropout: leave it out")
        self.gives_attention = bool(need_attn)

    def extract_features(self, *args: Any, **kwargs: Any) -> tuple[Tensor, dict[str, Any]]:
        return self(*args, features_only=True, **kwargs)

    def output_layer(self, features: Tensor, **_: Any) -> Tensor:
        return self.logits(features)

    def reorder_incremental_state(
        self, incremental_state: IncrementalState, new_order: Tensor
    ) -> None:
        state = self._state(incremental_state) if incremental_state else None
        if state is None or state.layers[0].attention.kept is None:
            return
        first = state.layers[0]
        sentences = first.cross_attention.kept.rows
        rows = sentence_rows(new_order, first.attention.kept.rows // sentences)
        stay = torch.equal(rows, torch.arange(sentences, device=rows.device))
        state.reorder(new_order, None if stay else rows)

    def reorder_incremental_state_scripting(
        self, incremental_state: IncrementalState, new_order: Tensor
    ) -> None:
        # fairseq's method calls every module in turn; here the decoder holds all states
        self.reorder_incremental_state(incremental_state, new_order)

    def max_positions(self) -> int:
        return self.longest


class HypTransformer(EncoderDecoder, FairseqEncoderDecoderModel):
    """An encoder-decoder built from an architecture's parts, which a subclass names.

    Example:
        ``fairseq-train data-bin --user-dir hyptrans --arch hybonet_base …``
    """

    parts: type[Parts]
    config: type
    encoder_type, decoder_type = HypEncoder, HypDecoder
    # an attribute that the constructor of fairseq's models sets
    _is_generation_fast = False
    # tells fairseq whether alignments need another pass over the whole translation
    full_context_alignment = property(lambda self: self.decoder.gives_attention)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        with self.parts.around_forward(self):
            return FairseqEncoderDecoderModel.forward(self, *args, **kwargs)

    def upgrade_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Rename the parameters of a checkpoint to this version's names.

        Raises:
            UserError: an incompatible version of this package wrote it.
        """
        current = self.parts.current_names(state_dict)
        check_version(current)
        state_dict.clear()
        state_dict.update(current)

    @classmethod
    def add_args(cls, parser: Any) -> None:
        for one in dataclasses.fields(cls.config):
            # fairseq would turn this field into a flag that switches it off
            if one.default is True:
                add_option(parser, one, default=argparse.SUPPRESS)
        super().add_args(parser)

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> "HypTransformer":
        """Build encoder and decoder for a task's dictionaries.

        Raises:
            ValueError: options contradict each other; the message names each.
        """
        words = (task.source_dictionary, task.target_dictionary)
        return cls(cls.parts, core_config(cfg, cls.config), *words)


def core_config(cfg: Any, config: type) -> Any:
    """Convert fairseq's configuration, made of flags or of a dataclass, to the core's."""
    if isinstance(cfg, config):
        return cfg
    names = {one.name for one in dataclasses.fields(config)}
    given = {name: getattr(cfg, name) for name in names if hasattr(cfg, name)}
    return config(**{k: v.value if isinstance(v, Enum) else v for k, v in given.items()})


def _beams(state: DecoderState, memory: Tensor) -> int:
    """Return the hypotheses per row of the cross-attention's state, which the first step fixes."""
    kept = state.layers[0].cross_attention.kept
    return beams_of(memory) if kept is None else len(memory) // kept.rows


def beams_of(memory: Tensor) -> int:
    """Return how many consecutive hypotheses share a source, as beam search lays them out.

    Shapes: ``[B, S, D]``. For the returned ``n``, rows ``0`` to ``n - 1``, ``n`` to ``2 n - 1``, …
    are equal; ``n`` is 1 if no rows repeat.
    """
    changes = (memory[1:] != memory[:-1]).flatten(1).any(1).nonzero() + 1
    return math.gcd(len(memory), *changes.flatten().tolist())


def sentence_rows(new_order: Tensor, beams: int) -> Tensor:
    """Return the sentences' rows that are needed after hypotheses were reordered.

    There is one for every ``beams`` hypotheses if these still share a sentence, as in beam search,
    else one for every hypothesis.

    Shapes: ``[B']``, rows of hypotheses -> ``[B' / beams]`` or ``[B']``, rows of sentences.
    """
    rows = new_order.div(beams, rounding_mode="floor")
    if beams == 1 or len(rows) % beams:
        return rows
    groups = rows.view(-1, beams)
    return groups[:, 0] if torch.equal(groups, groups[:, :1].expand_as(groups)) else rows


@register_criterion(
    "tiled_label_smoothed_cross_entropy", dataclass=LabelSmoothedCrossEntropyCriterionConfig
)
class TiledCrossEntropy(LabelSmoothedCrossEntropyCriterion):
    """Computes value and gradients of ``label_smoothed_cross_entropy`` from states and a table.

    Logits are products of the decoder's last states with a table of tokens. The criterion computes
    a few rows of them at a time, in the precision of these factors, and turns them into losses and
    gradients in float32 at least. Padding costs nothing. Every model works whose logits are such a
    product, fairseq's ``transformer`` included. ``--find-unused-parameters`` would take the table
    for unused, as it is read outside the model's forward pass.

    Raises:
        ValueError: the model's logits are not such a product, or ``--report-accuracy`` is given,
            which needs all logits.
    """

    @classmethod
    def build_criterion(cls, cfg: Any, task: Any) -> Any:
        if cfg.report_accuracy:
            raise ValueError(
                "--report-accuracy needs all logits: use --criterion label_smoothed_cross_entropy, "
                "or leave it out"
            )
        return super().build_criterion(cfg, task)

    def forward(self, model: Any, sample: dict[str, Any], reduce: bool = True) -> Any:
        factors_of(getattr(model, "decoder", None))
        inputs = {**sample["net_input"], "features_only": True}
        return super().forward(model, {**sample, "net_input": inputs}, reduce)

    def compute_loss(
        self, model: Any, net_output: Any, sample: dict[str, Any], reduce: bool = True
    ) -> tuple[Tensor, Tensor]:
        """Return both losses, summed; no caller in fairseq needs them per token."""
        features = net_output[0][:, self.ignore_prefix_size :]
        targets = sample["target"][:, self.ignore_prefix_size :].flatten()
        # indices, because the host would wait for a mask twice
        real = targets.ne(self.padding_idx).nonzero().squeeze(-1)
        features, table = factors_of(model.decoder)(features.flatten(0, 1)[real])
        return label_smoothed_cross_entropy(features, table, targets[real], smoothing=self.eps)


def factors_of(decoder: Any) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    """Return the function from a decoder's last states to the two factors of its logits.

    Shapes of this function: states ``[N, D]`` -> ``[N, K]``, ``[V, K]``.

    Raises:
        ValueError: the logits are not one product.
    """
    found: Callable[[Tensor], tuple[Tensor, Tensor]] | None
    found = getattr(getattr(decoder, "logits", None), "factors", None)
    if found is not None:
        return found
    projection = getattr(decoder, "output_projection", None)
    if isinstance(projection, nn.Linear) and projection.bias is None:
        return lambda states: (states, projection.weight)
    raise ValueError(
        "--criterion tiled_label_smoothed_cross_entropy needs a model whose logits are one product "
        "of states and a table: use label_smoothed_cross_entropy"
    )
