"""Use this package's models in the library transformers.

After ``import hyptrans.transformers``, ``AutoConfig``, ``AutoTokenizer`` and
``AutoModelForSeq2SeqLM`` can read model folders.
"""

from functools import wraps
from pathlib import Path
from typing import Any

from hyptrans.inference.load import locate, shipped
from hyptrans.support.extras import require


def _of_the_package(read: Any) -> Any:
    """Wrap a loader of the library to find this package's models by name, without the hub."""

    @wraps(read)
    def reading(pretrained_model_name_or_path: Any, *more: Any, **options: Any) -> Any:
        place = pretrained_model_name_or_path
        if isinstance(place, str) and place in shipped() and not Path(place).exists():
            place = str(locate(place))
        return read(place, *more, **options)

    return reading


_library = require("transformers", "transformers")

from hyptrans.transformers.configuration import HyptransConfig  # noqa: E402
from hyptrans.transformers.model import HyptransForConditionalGeneration  # noqa: E402
from hyptrans.transformers.tokenizer import HyptransTokenizer  # noqa: E402

_library.AutoConfig.register(HyptransConfig.model_type, HyptransConfig, exist_ok=True)
_library.AutoTokenizer.register(HyptransConfig, HyptransTokenizer, exist_ok=True)
_models: tuple[Any, ...] = (_library.AutoModel, _library.AutoModelForSeq2SeqLM)
for _auto in _models:
    _auto.register(HyptransConfig, HyptransForConditionalGeneration, exist_ok=True)
for _auto in (_library.AutoConfig, _library.AutoTokenizer, *_models, HyptransConfig):
    _auto.from_pretrained = _of_the_package(_auto.from_pretrained)
__all__ = ["HyptransConfig", "HyptransForConditionalGeneration", "HyptransTokenizer"]
