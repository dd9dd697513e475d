"""The Euclidean twins: fairseq's own Transformer in the sizes of the hyperbolic architectures.

``euclidean_SIZE`` normalizes after each block, as the Transformer's paper does,
``euclidean_prenorm_SIZE`` before it.
"""

from typing import Any

from fairseq.models import register_model_architecture
from fairseq.models.transformer import base_architecture

from hyptrans.seq2seq.sizes import SIZES, flags_of

PRENORM = {"encoder_normalize_before": True, "decoder_normalize_before": True}


def _register_twin(name: str, defaults: dict[str, Any]) -> None:
    @register_model_architecture("transformer", name)
    def architecture(args: Any) -> None:
        for option, value in defaults.items():
            setattr(args, option, getattr(args, option, value))
        base_architecture(args)


for _size in SIZES:
    _register_twin(f"euclidean_{_size}", flags_of(_size))
    _register_twin(f"euclidean_prenorm_{_size}", flags_of(_size) | PRENORM)
