"""Encoder and decoder as one model, with the version that its parameters are of."""

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

from torch import Tensor, nn

from hyptrans.seq2seq.config import check_curvature
from hyptrans.seq2seq.decoder import Decoder
from hyptrans.seq2seq.encoder import Encoder
from hyptrans.seq2seq.parts import Parts, Role
from hyptrans.seq2seq.sharing import check_shareable, check_shared
from hyptrans.seq2seq.sizes import side_of
from hyptrans.seq2seq.version import KEY, check_version, this_version


class Words(Protocol):
    """What a model asks of a dictionary."""

    def __len__(self) -> int: ...

    def pad(self) -> int:
        """The token of padding."""


AnEncoder = TypeVar("AnEncoder", bound=Encoder)
ADecoder = TypeVar("ADecoder", bound=Decoder)


class EncoderDecoder(nn.Module):
    """A translation model.

    Shapes: source tokens ``[B, S]``, previous target tokens ``[B, T]`` -> logits ``[B, T, V]``.

    Args:
        encoder: :class:`Encoder`, or another with its methods.
        decoder: :class:`Decoder`, or another with its methods.
    """

    version: Tensor

    def __init__(self, encoder: Any, decoder: Any) -> None:
        super().__init__()
        self.encoder, self.decoder = encoder, decoder
        self.register_buffer(KEY, this_version())

    def forward(self, source: Tensor, previous: Tensor) -> Tensor:
        memory, padding = self.encoder.memory(source)
        logits: Tensor = self.decoder.predict(previous, memory, padding)
        return logits

    def load_state_dict(self, state_dict: Mapping[str, Any], *args: Any, **options: Any) -> Any:
        """Load the parameters of a file; they are then of this version.

        Raises:
            UserError: another version wrote them, or parameters differ that the model shares.
        """
        check_version(state_dict)
        check_shared(self, state_dict)
        loaded = super().load_state_dict(state_dict, *args, **options)
        self.version.copy_(this_version())
        return loaded


def build(
    kind: type[Parts],
    cfg: Any,
    source: Words,
    target: Words,
    encoder_type: type[AnEncoder] = Encoder,  # type: ignore[assignment]
    decoder_type: type[ADecoder] = Decoder,  # type: ignore[assignment]
) -> tuple[AnEncoder, ADecoder]:
    """Encoder and decoder of an architecture's parts.

    Args:
        kind: of the parts.
        cfg: the architecture's configuration.
        source: dictionary of the source.
        target: dictionary of the target.
        encoder_type: the class of the encoder.
        decoder_type: the class of the decoder.

    Raises:
        ValueError: options that do not go together, each named.
    """
    check_curvature(cfg)
    encoder_parts = kind(cfg, side_of(cfg, "encoder"))
    embedding = encoder_parts.embedding(len(source), source.pad())
    encoder = encoder_type(encoder_parts, source, embedding)
    decoder_parts = kind(cfg, side_of(cfg, "decoder"))
    if cfg.share_all_embeddings:
        check_shareable(source, target, encoder_parts.side, decoder_parts.side)
    else:
        embedding = decoder_parts.embedding(len(target), target.pad())
    decoder = decoder_type(
        decoder_parts,
        target,
        embedding,
        cross=Role(memory=encoder.last_parts()[-1], memory_width=encoder_parts.side.width),
        tied=cfg.share_all_embeddings or cfg.share_decoder_input_output_embed,
    )
    return encoder, decoder
