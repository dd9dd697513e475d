"""Options of ``generate`` from a model folder, checked, since the folder may be a stranger's."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import GenerationConfig, StoppingCriteria
from transformers.utils import GENERATION_CONFIG_NAME

from hyptrans.support.errors import UserError
from hyptrans.support.files import read_bytes, read_json

_MOST_BYTES = 1 << 20
_MOST = 10_000
"""Largest value of a numeric option, such as a number of beams or tokens."""
_OF_KINDS: dict[type, str] = {
    int: """max_length max_new_tokens min_length min_new_tokens num_beams num_return_sequences
        top_k no_repeat_ngram_size encoder_no_repeat_ngram_size""",
    float: """temperature top_p min_p typical_p epsilon_cutoff eta_cutoff length_penalty max_time
        repetition_penalty encoder_repetition_penalty guidance_scale diversity_penalty""",
    bool: """do_sample early_stopping use_cache renormalize_logits remove_invalid_values
        output_scores output_attentions output_hidden_states output_logits return_dict_in_generate
        _from_model_config""",
    str: "transformers_version stop_strings",
}
_KINDS = {name: kind for kind, names in _OF_KINDS.items() for name in names.split()}
_TOKENS = [
    *("bos_token_id", "pad_token_id", "eos_token_id", "decoder_start_token_id"),
    *("forced_bos_token_id", "forced_eos_token_id", "suppress_tokens", "begin_suppress_tokens"),
]


def read(folder: Path, symbols: int) -> GenerationConfig | None:
    """Read a model folder's options for ``generate``; return None if it has none.

    ``symbols`` is the size of the target's dictionary.

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
    """Raise ValueError for an option or value that ``generate`` does not take for these models."""
    if name not in _KINDS and name not in _TOKENS:
        raise ValueError(f"a model of hyptrans has no option {name[:80]!r}: take it out")
    if name == "early_stopping" and value == "never":
        return
    kind, most = (int, symbols - 1) if name in _TOKENS else (_KINDS[name], _MOST)
    several = isinstance(value, list) and (name in _TOKENS or kind is str)
    if not all(_fits(one, kind, most) for one in (value if several else [value])):
        raise ValueError(f"its option {name} cannot be {str(value)[:80]!r}")


def _fits(value: Any, kind: type, most: int) -> bool:
    if value is None or kind in (bool, str) or isinstance(value, bool):
        return value is None or type(value) is kind
    if kind is float:
        return isinstance(value, int | float) and abs(value) <= _MOST
    return isinstance(value, int) and 0 <= value <= most


class StopStrings(StoppingCriteria):
    """Ends a hypothesis as soon as its text contains one of the strings."""

    def __init__(self, strings: Sequence[str], tokenizer: Any) -> None:
        self.strings, self.tokenizer = strings, tokenizer

    def __call__(self, input_ids: Tensor, scores: Any, **_: Any) -> Any:
        texts = self.tokenizer.batch_decode(input_ids, skip_special_tokens=True)
        found = [any(string in text for string in self.strings) for text in texts]
        return torch.tensor(found, device=input_ids.device)
