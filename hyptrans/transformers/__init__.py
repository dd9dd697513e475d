"""Models of this package in the library transformers.

``import hyptrans.transformers`` makes ``AutoConfig``, ``AutoTokenizer`` and
``AutoModelForSeq2SeqLM`` know model folders.
"""

from functools import wraps
from pathlib import Path
from typing import Any

from hyptrans.inference.sharing import folder
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


def _told_of_earlier_folders(read: Any) -> Any:
    """Let ``AutoConfig`` say what becomes of folders that it has no name of a class for."""

    @wraps(read)
    def told(pretrained_model_name_or_path: Any, **options: Any) -> Any:
        place = pretrained_model_name_or_path
        try:
            return read(place, **options)
        except ValueError as error:
            try:
                ours = "model_type" not in folder.own_config(Path(place))
            except (UserError, TypeError):
                ours = False
            if not ours:
                raise
            raise UserError(
                f"{place} was written before model folders were of transformers: write it again "
                "with hyptrans export, of its checkpoint; hyptrans.load reads it as it is"
            ) from error

    return told


_library = extras.transformers()
check_version(_library.__version__)

from hyptrans.transformers.configuration import HyptransConfig  # noqa: E402
from hyptrans.transformers.model import HyptransForConditionalGeneration  # noqa: E402
from hyptrans.transformers.tokenizer import HyptransTokenizer  # noqa: E402

_library.AutoConfig.from_pretrained = _told_of_earlier_folders(_library.AutoConfig.from_pretrained)
_library.AutoConfig.register(HyptransConfig.model_type, HyptransConfig, exist_ok=True)
_library.AutoTokenizer.register(HyptransConfig, HyptransTokenizer, exist_ok=True)
for _auto in (_library.AutoModel, _library.AutoModelForSeq2SeqLM):
    _auto.register(HyptransConfig, HyptransForConditionalGeneration, exist_ok=True)
__all__ = ["HyptransConfig", "HyptransForConditionalGeneration", "HyptransTokenizer"]
