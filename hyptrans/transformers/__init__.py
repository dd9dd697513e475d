"""Models of this package in the library transformers.

``import hyptrans.transformers`` makes ``AutoConfig``, ``AutoTokenizer`` and
``AutoModelForSeq2SeqLM`` know model folders.
"""

from hyptrans.support import extras
from hyptrans.support.errors import UserError

VERSIONS = ("5.24", "6")
"""Of the library: the first that is supported, and the first that is not."""


def check_version(found: str) -> None:
    """Raise UserError for a version of the library that is not supported."""

    def number(version: str) -> list[int]:
        return [int(part) for part in version.split(".")[:2] if part.isdecimal()]

    first, after = map(number, VERSIONS)
    if not first <= number(found) < after:
        raise UserError(
            f"transformers {found} is installed, hyptrans.transformers needs one from "
            f"{VERSIONS[0]} to below {VERSIONS[1]}: pip install 'hyptrans[transformers]'"
        )


_library = extras.transformers()
check_version(_library.__version__)

from hyptrans.transformers.configuration import HyptransConfig  # noqa: E402
from hyptrans.transformers.model import HyptransForConditionalGeneration  # noqa: E402
from hyptrans.transformers.tokenizer import HyptransTokenizer  # noqa: E402

_library.AutoConfig.register(HyptransConfig.model_type, HyptransConfig, exist_ok=True)
_library.AutoTokenizer.register(HyptransConfig, HyptransTokenizer, exist_ok=True)
for _auto in (_library.AutoModel, _library.AutoModelForSeq2SeqLM):
    _auto.register(HyptransConfig, HyptransForConditionalGeneration, exist_ok=True)
__all__ = ["HyptransConfig", "HyptransForConditionalGeneration", "HyptransTokenizer"]
