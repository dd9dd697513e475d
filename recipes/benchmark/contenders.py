"""The models that are timed against each other, and what they do in a step."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch

import hyptrans.fairseq  # noqa: F401

# isort: split
from fairseq import models, utils
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.data import Dictionary
from fairseq.models import FairseqEncoderDecoderModel
from fairseq.modules import MultiheadAttention
from fairseq.optim.adam import Adam
from fairseq.sequence_generator import SequenceGenerator
from torch import Tensor, nn
from torch.nn import functional as F

from hyptrans.fairseq.model import HypTransformer
from hyptrans.fairseq.tiled import TiledCrossEntropy, factors_of
from hyptrans.kernels import products
from hyptrans.kernels.loss import rows_of_tile
from hyptrans.kernels.operator import VARIABLE
from hyptrans.layers.euclidean import Linear
from hyptrans.layers.han import HyperbolicAttention
from hyptrans.models.han import HANConfig, HANParts
from hyptrans.optim import RiemannianAdam
from hyptrans.seq2seq.parts import Role
from hyptrans.seq2seq.sizes import SIZES, flags_of

VOCABULARY = 6000
BEAM, SENTENCES = 5, 32
TWIN, TWIN_SDPA, FLOOR = "euclidean", "euclidean, SDPA only", "floor"
MANIFOLD = "hybonet, manifold"
"""HyboNet with embeddings that are points, and Riemannian Adam."""
SOFTMAX = "hypformer, softmax attention"
VARIANTS = {
    MANIFOLD: ("hybonet", {"embedding_storage": "manifold"}),
    SOFTMAX: ("hypformer", {"hypformer_attention": "softmax"}),
}
WHOLE = ", fairseq's loss"
"""Ending of the name of a contender whose loss makes all logits of a batch at once."""
EAGER, INDUCTOR, COMPILED = ", eager", ", inductor", ", compiled"
"""Endings of names: by ``HYPTRANS_KERNELS``, and layer by layer through ``torch.compile``."""
FOREACH = ", riemannian_adam"
"""Ending of names: the optimizer that updates all tensors at once, where fairseq's Adam loops."""


@dataclass(frozen=True)
class Size:
    """What all contenders of a comparison share.

    Attributes:
        name: of a named size, such as ``wmt_d64``, whose widths and heads these are.
        length: tokens of a sentence, on both sides.
        layers: of each side.
    """

    name: str
    length: int
    layers: int = 6
    dropout: float = 0.1
    target_tokens: int = 4096

    @property
    def dim(self) -> int:
        return int(SIZES[self.name]["width"])

    @property
    def sentences(self) -> int:
        return max(1, self.target_tokens // self.length)

    def fields(self) -> dict[str, Any]:
        """Configuration fields of a model of this size."""
        return {
            **flags_of(self.name),
            "encoder_layers": self.layers,
            "decoder_layers": self.layers,
            "dropout": self.dropout,
            "attention_dropout": 0.0,
            **dict.fromkeys(
                ("max_source_positions", "max_target_positions"), max(self.length, 62) + 2
            ),
        }


class SdpaMultiheadAttention(MultiheadAttention):
    """fairseq's attention, but through torch's kernel wherever a whole sentence is at hand."""

    def forward(
        self,
        query: Tensor,
        key: Tensor | None,
        value: Tensor | None,
        incremental_state: Any = None,
        attn_mask: Tensor | None = None,
        **options: Any,
    ) -> tuple[Tensor, Tensor | None]:
        if incremental_state is not None:
            options |= {"incremental_state": incremental_state, "attn_mask": attn_mask}
            return super().forward(query, key, value, **options)
        queries, keys, values = (
            linear(x).unflatten(-1, (self.num_heads, -1)).permute(1, 2, 0, 3)
            for linear, x in ((self.q_proj, query), (self.k_proj, key), (self.v_proj, value))
        )
        causal = attn_mask is not None
        mixed = F.scaled_dot_product_attention(queries, keys, values, is_causal=causal)
        return self.out_proj(mixed.permute(2, 0, 1, 3).flatten(2)), None


class FloorAttention(HyperbolicAttention):
    """HAN's maps and the attention call, with nothing between them and no residual."""

    def __init__(self, width: int, heads: int, **role: Any) -> None:
        super().__init__(width, heads, coordinates="cartesian", **role)

    def points(self, numbers: Tensor) -> Tensor:
        return numbers

    def mix(
        self, query: Tensor, key: Tensor, value: Tensor, *, allowed: Tensor | None, is_causal: bool
    ) -> Tensor:
        return F.scaled_dot_product_attention(
            query, key, value, attn_mask=allowed, is_causal=is_causal
        )

    def merge(self, heads: Tensor, x: Tensor) -> Tensor:
        out: Tensor = self.out(heads.transpose(1, 2).flatten(2))
        return out


class FloorParts(HANParts):
    """A Transformer without anything between its matrix products."""

    def positions(self, *, before: Any) -> Any:
        return _Unchanged()

    def attention(self, role: Role, *, before: Any) -> Any:
        return FloorAttention(
            self.side.width, self.side.heads, memory_width=role.memory_width, causal=role.causal
        )

    def feed_forward(self, *, before: Any) -> Any:
        width, inner = self.side.width, self.side.ffn_width
        return nn.Sequential(Linear(width, inner), Linear(inner, width))


class _Unchanged(nn.Module):
    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        return x


class Floor(HypTransformer):
    """The skeleton around :class:`FloorParts`."""

    parts, config = FloorParts, HANConfig


def dictionary() -> Dictionary:
    """Random words, ``VOCABULARY`` symbols in all."""
    words = Dictionary()
    for i in range(VOCABULARY - len(words)):
        words.add_symbol(f"w{i}")
    return words


def build(name: str, device: str, fields: Mapping[str, Any]) -> FairseqEncoderDecoderModel:
    """A fresh model, the same one each time.

    Args:
        name: a contender, or an architecture of this package, named sizes included.
        device: where to put it.
        fields: of the configuration, where they differ from the defaults.

    Raises:
        ValueError: the configuration lacks a field.
    """
    torch.manual_seed(1)
    words = dictionary()
    task = SimpleNamespace(source_dictionary=words, target_dictionary=words)
    if name in (TWIN, TWIN_SDPA):
        return _twin(task, fields, fused=name == TWIN_SDPA).to(device)
    if name in VARIANTS:
        name, fields = VARIANTS[name][0], {**fields, **VARIANTS[name][1]}
    cfg = HANConfig() if name == FLOOR else models.MODEL_DATACLASS_REGISTRY[name]()
    for field, value in fields.items():
        if not hasattr(cfg, field):
            raise ValueError(f"{type(cfg).__name__} has no field {field}")
        setattr(cfg, field, value)
    model = Floor if name == FLOOR else models.MODEL_REGISTRY[name]
    return model.build_model(cfg, task).to(device)


def _twin(task: Any, fields: Mapping[str, Any], *, fused: bool) -> FairseqEncoderDecoderModel:
    cfg = Namespace(arch="transformer", _name="transformer", **fields)
    models.ARCH_CONFIG_REGISTRY["transformer"](cfg)
    twin = models.ARCH_MODEL_REGISTRY["transformer"].build_model(cfg, task)
    for module in twin.modules() if fused else ():
        if isinstance(module, MultiheadAttention):
            module.__class__ = SdpaMultiheadAttention
    return twin


def batch(size: Size, device: str) -> dict[str, Any]:
    """A batch of random sentences to train on, as fairseq gives it to a criterion."""
    shape = (size.sentences, size.length)
    source, previous, target = (
        torch.randint(4, VOCABULARY, shape, device=device) for _ in range(3)
    )
    lengths = torch.full((size.sentences,), size.length, device=device)
    inputs = {"src_tokens": source, "src_lengths": lengths, "prev_output_tokens": previous}
    return {"net_input": inputs, "target": target, "ntokens": target.numel()}


def criterion(kind: type[LabelSmoothedCrossEntropyCriterion]) -> Any:
    """A criterion that counts by tokens, with label smoothing of 0.1."""
    return kind(SimpleNamespace(target_dictionary=dictionary()), False, 0.1)


def tokens_of(phase: str, size: Size) -> int:
    """Target tokens of a step."""
    return SENTENCES * size.length if phase == "decode" else size.sentences * size.length


def base_of(name: str) -> str:
    """A contender's name without the ending that says how it runs."""
    for ending in (EAGER, INDUCTOR, COMPILED, FOREACH, WHOLE):
        name = name.removesuffix(ending)
    return name


def _as_named(name: str, model: Any, step: Callable[[], None]) -> Callable[[], None]:
    """The step with the kernels, or with the layers compiled, that the name's ending asks for."""
    if name.endswith(COMPILED):
        for layer in (*model.encoder.layers, *model.decoder.layers):
            layer.compile(dynamic=False)
    backend = {EAGER: "eager", INDUCTOR: "inductor"}.get(name[len(base_of(name)) :])
    if backend is None:
        return step

    def by_backend() -> None:
        with mock.patch.dict(os.environ, {VARIABLE: backend}):
            step()

    return by_backend


def training_step(
    name: str,
    size: Size,
    device: str,
    autocast: torch.dtype | None = None,
    *,
    updates: bool = True,
) -> Callable[[], None]:
    """A function that makes forward, loss, backward and, if it ``updates``, clipping and Adam.

    The loss is in tiles, or fairseq's where the name says so. The floor: forward and backward from
    a given gradient of a tile's logits, no more.
    """
    model = build(base_of(name), device, size.fields()).train()
    kind = LabelSmoothedCrossEntropyCriterion if name.endswith(WHOLE) else TiledCrossEntropy
    sample, loss_of = batch(size, device), criterion(kind)
    parameters = list(model.parameters())
    adam = RiemannianAdam if base_of(name) == MANIFOLD or name.endswith(FOREACH) else Adam
    optimizer = adam(parameters, lr=1e-4, betas=(0.9, 0.98))
    rows = min(rows_of_tile(torch.device(device), VOCABULARY), sample["ntokens"])
    given = torch.randn(rows, VOCABULARY, device=device) * 1e-6

    def step() -> None:
        with torch.autocast(device, dtype=autocast, enabled=autocast is not None):
            if name == FLOOR:
                features, _ = model(**sample["net_input"], features_only=True)
                _back(features, model.decoder, given)
                model.zero_grad()
                return
            loss, *_ = loss_of(model, sample)
        (loss / sample["ntokens"]).backward()
        if updates:
            utils.clip_grad_norm_(parameters, 0.5)
            optimizer.step()
        optimizer.zero_grad()

    return _as_named(name, model, step)


def _back(states: Tensor, decoder: Any, given: Tensor) -> None:
    """Products of logits and backward, of a few rows at a time as in the criterion."""
    features, table = factors_of(decoder)(states.flatten(0, 1))
    rows = features.detach().requires_grad_()
    for tile in rows.split(len(given)):
        logits = products.linear(tile, table)
        torch.autograd.backward(logits, given[: len(tile)].to(logits.dtype))
    features.backward(rows.grad)


def decoding(
    name: str, size: Size, device: str, autocast: torch.dtype | None = None
) -> Callable[[], None]:
    """A function that translates a batch by beam search, every hypothesis ``length`` tokens."""
    model = build(base_of(name), device, size.fields()).eval()
    words = dictionary()
    source = torch.randint(4, VOCABULARY, (SENTENCES, size.length), device=device)
    source[:, -1] = words.eos()
    most = size.length - 1
    generator = SequenceGenerator(
        [model], words, beam_size=BEAM, max_len_a=0, max_len_b=most, min_len=most
    ).to(device)
    lengths = torch.full((SENTENCES,), size.length, device=device)
    sample = {"net_input": {"src_tokens": source, "src_lengths": lengths}}

    def step() -> None:
        with torch.no_grad(), torch.autocast(device, dtype=autocast, enabled=autocast is not None):
            found = generator.generate([model], sample)
        assert all(len(h[0]["tokens"]) == size.length for h in found)

    return _as_named(name, model, step)
