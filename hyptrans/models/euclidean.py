"""The Euclidean twins: fairseq's own Transformer in the sizes of the hyperbolic architectures."""

from typing import Any

from fairseq.models import register_model_architecture
from fairseq.models.transformer import base_architecture

from hyptrans.models._config import SIZES, flags_of


def _register_twin(size: str) -> None:
    @register_model_architecture("transformer", f"euclidean_{size}")
    def architecture(args: Any) -> None:
        for name, value in flags_of(size).items():
            setattr(args, name, getattr(args, name, value))
        base_architecture(args)


for _size in SIZES:
    _register_twin(_size)
