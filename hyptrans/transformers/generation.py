"""Options of ``generate`` in a model folder, which may be a stranger's."""

from pathlib import Path
from typing import Any

from transformers import GenerationConfig
from transformers.utils import GENERATION_CONFIG_NAME

from hyptrans.support.errors import UserError
from hyptrans.support.files import read_bytes, read_json

_MOST_BYTES = 1 << 20
_MOST = 10_000
"""Of a number of beams or tokens."""
_KINDS: dict[str, type] = {
    **dict.fromkeys(("max_length", "max_new_tokens", "min_length", "min_new_tokens"), int),
    **dict.fromkeys(("num_beams", "num_return_sequences", "top_k"), int),
    **dict.fromkeys(("no_repeat_ngram_size", "encoder_no_repeat_ngram_size"), int),
    **dict.fromkeys(("temperature", "top_p", "min_p", "typical_p", "epsilon_cutoff"), float),
    **dict.fromkeys(("eta_cutoff", "length_penalty", "repetition_penalty", "max_time"), float),
    **dict.fromkeys(("encoder_repetition_penalty", "guidance_scale", "diversity_penalty"), float),
    **dict.fromkeys(("do_sample", "early_stopping", "use_cache", "renormalize_logits"), bool),
    **dict.fromkeys(("output_attentions", "output_hidden_states", "output_scores"), bool),
    **dict.fromkeys(("output_logits", "return_dict_in_generate", "remove_invalid_values"), bool),
    **dict.fromkeys(("_from_model_config",), bool),
    **dict.fromkeys(("transformers_version", "stop_strings"), str),
}
_TOKENS: dict[str, type] = {
    **dict.fromkeys(
        ("bos_token_id", "pad_token_id", "eos_token_id", "decoder_start_token_id"), int
    ),
    **dict.fromkeys(("forced_bos_token_id", "forced_eos_token_id", "suppress_tokens"), int),
    "begin_suppress_tokens": int,
}
_LISTS = ("eos_token_id", "forced_eos_token_id", "suppress_tokens", "begin_suppress_tokens")
_LISTS += ("stop_strings",)
"""Options that may have several values."""


def read(folder: Path, symbols: int) -> GenerationConfig | None:
    """The options that a model folder has for ``generate``; None where it has none.

    Args:
        folder: a model folder.
        symbols: of the target's dictionary.

    Raises:
        UserError: the file is damaged, or an option is unknown, of another type or out of range.
    """
    path = folder / GENERATION_CONFIG_NAME
    if not path.exists():
        return None
    try:
        found = read_json(read_bytes(path, _MOST_BYTES).decode())
        for name, value in found.items():
            _check(name, value, symbols)
        return GenerationConfig(**found)
    except (ValueError, TypeError) as error:
        raise UserError(f"{path} cannot be used: {' '.join(str(error).split())[:300]}") from error


def _check(name: str, value: Any, symbols: int) -> None:
    """Raise ValueError for an option that ``generate`` of this package's models does not take."""
    kind = {**_KINDS, **_TOKENS}.get(name)
    if kind is None:
        raise ValueError(f"a model of hyptrans has no option {name[:80]!r}: take it out")
    values = value if isinstance(value, list) and name in _LISTS else [value]
    if not all(_fits(one, kind, symbols - 1 if name in _TOKENS else _MOST) for one in values):
        raise ValueError(f"its option {name} cannot be {str(value)[:80]!r}")


def _fits(value: Any, kind: type, most: int) -> bool:
    if value is None or kind in (bool, str) or isinstance(value, bool):
        return value is None or type(value) is kind
    if kind is float:
        return isinstance(value, int | float) and abs(value) <= _MOST
    return isinstance(value, int) and 0 <= value <= most
