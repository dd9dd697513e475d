"""Encoder and decoder as one model, which records the version that wrote its parameters."""

from collections.abc import Mapping
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from hyptrans.seq2seq.config import check_curvature_option
from hyptrans.seq2seq.parts import Parts, Role
from hyptrans.seq2seq.sizes import Side, side_of
from hyptrans.seq2seq.stacks import Decoder, Encoder
from hyptrans.seq2seq.version import KEY, check_version, this_version
from hyptrans.support.errors import UserError


class Words(Protocol):
    """The part of a dictionary that a model needs."""

    def __len__(self) -> int: ...

    def pad(self) -> int:
        """Return the padding token."""


class EncoderDecoder(nn.Module):
    """A translation model, assembled from an architecture's parts.

    Shapes: source tokens ``[B, S]``, previous target tokens ``[B, T]`` -> logits ``[B, T, V]``.

    Args:
        parts: the class of the architecture's parts.
        cfg: the architecture's configuration.
        source: dictionary of the source.
        target: dictionary of the target.

    Raises:
        ValueError: options contradict each other; the message names them.
    """

    encoder_type: type[Encoder] = Encoder
    decoder_type: type[Decoder] = Decoder
    version: Tensor

    def __init__(self, parts: type[Parts], cfg: Any, source: Words, target: Words) -> None:
        # not super(): another library's base class may come between this class and torch's
        nn.Module.__init__(self)
        check_curvature_option(cfg)
        self.parts = parts
        encoder_parts = parts(cfg, side_of(cfg, "encoder"))
        embedding = encoder_parts.embedding(len(source), source.pad())
        self.encoder: Any = self.encoder_type(encoder_parts, source, embedding)
        decoder_parts = parts(cfg, side_of(cfg, "decoder"))
        if cfg.share_all_embeddings:
            _check_shareable(source, target, encoder_parts.side, decoder_parts.side)
        else:
            embedding = decoder_parts.embedding(len(target), target.pad())
        self.decoder: Any = self.decoder_type(
            decoder_parts,
            target,
            embedding,
            cross=Role(memory=self.encoder.last_parts()[-1], memory_width=encoder_parts.side.width),
            tied=cfg.share_all_embeddings or cfg.share_decoder_input_output_embed,
        )
        self.register_buffer(KEY, this_version())

    def forward(self, source: Tensor, previous: Tensor) -> Tensor:
        memory, padding = self.encoder.memory(source)
        return self.decoder.predict(previous, memory, padding)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, *args: Any, **options: Any
    ) -> Any:
        """Load the parameters of a file and mark them as this version's.

        Raises:
            UserError: this version cannot read them, or parameters that the model shares differ.
        """
        state = self.parts.current_names(state_dict)
        if not strict:
            # fairseq's moving averages omit the version
            state.setdefault(KEY, self.version)
        check_version(state)
        _check_shared(self, state)
        loaded = super().load_state_dict(state, strict, *args, **options)
        self.version = this_version().to(self.version.device)
        return loaded


def _check_shared(model: nn.Module, parameters: Mapping[str, Tensor]) -> None:
    """Check that a checkpoint has one value for a parameter that the model has under several names.

    torch would silently keep the value of the last name.

    Raises:
        UserError: two parameters that the model shares differ.
    """
    first: dict[int, str] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        other = first.setdefault(id(parameter), name)
        one, two = parameters.get(other), parameters.get(name)
        if one is None or two is None or one is two or one.shape != two.shape:
            continue
        if not torch.allclose(one, two, rtol=0, atol=0, equal_nan=True):
            raise UserError(
                f"its {other} and {name} differ, and this model has one table for both: leave "
                "--share-all-embeddings and --share-decoder-input-output-embed as they were"
            )


def _check_shareable(source: Any, target: Any, encoder: Side, decoder: Side) -> None:
    """Check that both sides can share one embedding.

    Raises:
        ValueError: their dictionaries or widths differ.
    """
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
