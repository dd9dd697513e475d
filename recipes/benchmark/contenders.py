"""Build the models that the benchmarks time, and define the steps that they time."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch

import hyptrans.fairseq  # noqa: F401 - registers the architectures, before fairseq is imported

# isort: split
from fairseq import models, utils
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.data import Dictionary
from fairseq.models import FairseqEncoderDecoderModel
from fairseq.optim.adam import Adam
from fairseq.sequence_generator import SequenceGenerator

from hyptrans.fairseq.model import TiledCrossEntropy
from hyptrans.optim import RiemannianAdam
from hyptrans.seq2seq.sizes import SIZES, flags_of

VOCABULARY = 6000
BEAM, SENTENCES = 5, 32
FAIRSEQ, TWIN = "fairseq's transformer", "euclidean"
"""fairseq's own model and the package's: the same formulas, but the package's uses the matrix
products and the attention kernel of the hyperbolic layers."""
MANIFOLD = "hybonet, manifold"
"""HyboNet whose embeddings are points, trained by Riemannian Adam."""
SOFTMAX = "hypformer, softmax attention"
VARIANTS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    # the fields give the size
    TWIN: ("euclidean_tiny", {}),
    MANIFOLD: ("hybonet", {"embedding_storage": "manifold"}),
    SOFTMAX: ("hypformer", {"hypformer_attention": "softmax"}),
}
WHOLE = ", fairseq's loss"
"""Suffix of a contender's name; its loss computes all logits of a batch at once."""


@dataclass(frozen=True)
class Size:
    """The size that all contenders of a comparison share.

    Attributes:
        name: a named size, such as ``wmt_d64``, which sets widths and heads.
        length: tokens per sentence, on both sides.
        layers: number of layers per side.
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

    def tokens(self, phase: str) -> int:
        """Return the number of target tokens in a step."""
        return (SENTENCES if phase == "decode" else self.sentences) * self.length

    def fields(self) -> dict[str, Any]:
        """Return the configuration fields of a model of this size."""
        positions = ("max_source_positions", "max_target_positions")
        return {
            **flags_of(self.name),
            **{"encoder_layers": self.layers, "decoder_layers": self.layers},
            **{"dropout": self.dropout, "attention_dropout": 0.0},
            **dict.fromkeys(positions, max(self.length, 62) + 2),
        }


def dictionary() -> Dictionary:
    """Return a dictionary of made-up words, ``VOCABULARY`` symbols in all."""
    words = Dictionary()
    for i in range(VOCABULARY - len(words)):
        words.add_symbol(f"w{i}")
    return words


def build(name: str, device: str, fields: Mapping[str, Any]) -> FairseqEncoderDecoderModel:
    """Build a fresh model with the same weights each time.

    Args:
        name: a contender or an architecture of this package, named sizes included.
        device: where to put the model.
        fields: configuration fields that differ from the defaults.

    Raises:
        TypeError: the configuration lacks a field.
    """
    torch.manual_seed(1)
    words = dictionary()
    task = SimpleNamespace(source_dictionary=words, target_dictionary=words)
    if name == FAIRSEQ:
        cfg = Namespace(arch="transformer", _name="transformer", **fields)
        models.ARCH_CONFIG_REGISTRY["transformer"](cfg)
        return models.ARCH_MODEL_REGISTRY["transformer"].build_model(cfg, task).to(device)
    if name in VARIANTS:
        name, fields = VARIANTS[name][0], {**fields, **VARIANTS[name][1]}
    cfg = models.MODEL_DATACLASS_REGISTRY[name](**fields)
    return models.MODEL_REGISTRY[name].build_model(cfg, task).to(device)


def batch(size: Size, device: str) -> dict[str, Any]:
    """Return a training batch of random sentences in the form that fairseq gives a criterion."""
    shape = (size.sentences, size.length)
    source, previous, target = (
        torch.randint(4, VOCABULARY, shape, device=device) for _ in range(3)
    )
    lengths = torch.full((size.sentences,), size.length, device=device)
    inputs = {"src_tokens": source, "src_lengths": lengths, "prev_output_tokens": previous}
    return {"net_input": inputs, "target": target, "ntokens": target.numel()}


def training_step(
    name: str,
    size: Size,
    device: str,
    autocast: torch.dtype | None = None,
    *,
    updates: bool = True,
) -> Callable[[], None]:
    """Return a function that runs forward, loss, backward and, if ``updates``, clipping and Adam.

    The loss is computed in tiles, or by fairseq's criterion if the name ends with ``WHOLE``.
    """
    base = name.removesuffix(WHOLE)
    model = build(base, device, size.fields()).train()
    kind = LabelSmoothedCrossEntropyCriterion if name.endswith(WHOLE) else TiledCrossEntropy
    loss_of = kind(SimpleNamespace(target_dictionary=dictionary()), False, 0.1)
    sample, parameters = batch(size, device), list(model.parameters())
    adam = RiemannianAdam if base == MANIFOLD else Adam
    optimizer = adam(parameters, lr=1e-4, betas=(0.9, 0.98))

    def step() -> None:
        with torch.autocast(device, dtype=autocast, enabled=autocast is not None):
            loss, *_ = loss_of(model, sample)
        (loss / sample["ntokens"]).backward()
        if updates:
            utils.clip_grad_norm_(parameters, 0.5)
            optimizer.step()
        optimizer.zero_grad()

    return step


def decoding(
    name: str, size: Size, device: str, autocast: torch.dtype | None = None
) -> Callable[[], None]:
    """Return a function that translates a batch by beam search, ``length`` tokens per sentence."""
    model, words = build(name, device, size.fields()).eval(), dictionary()
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

    return step
