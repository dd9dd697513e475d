"""A model folder's text processing as a tokenizer of the library transformers."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizer

from hyptrans.inference import contents, text
from hyptrans.inference.dictionary import SPECIAL, Dictionary
from hyptrans.inference.load import locate
from hyptrans.inference.sharing import folder
from hyptrans.inference.text import TextRules
from hyptrans.support.errors import UserError


class HyptransTokenizer(PreTrainedTokenizer):
    """Turns raw text into the token numbers that a model was trained on, and back.

    Sources get the numbers of the source's dictionary, targets (``text_target=``) those of the
    target's, with ``</s>`` at the end. Numbers become text of the target language. A ``</s>`` that
    is written in a text counts as text.

    Args:
        languages: source and target language.
        dictionaries: those of source and target.
        rules: how text becomes subwords.
        options: options of the library's tokenizers.
    """

    model_input_names = ["input_ids", "attention_mask"]  # noqa: RUF012 - as the library has it

    def __init__(
        self,
        languages: tuple[str, str],
        dictionaries: tuple[Dictionary, Dictionary],
        rules: TextRules,
        **options: Any,
    ) -> None:
        self.languages, self.dictionaries, self.rules = languages, dictionaries, rules
        self._side = 0
        # datasets ignores an attribute of this name when it compares tokenizers
        self.cache: dict[int, Callable[[str], list[str]]] = {}
        self._join = rules.decoder()
        names = ("bos_token", "pad_token", "eos_token", "unk_token")
        special = dict(zip(names, SPECIAL, strict=True))
        super().__init__(**{**special, "split_special_tokens": True, **options})

    @classmethod
    def from_pretrained(  # type: ignore[override]
        cls,
        pretrained_model_name_or_path: str | os.PathLike[str],
        *_: Any,
        revision: str | None = None,
        token: str | None = None,
        **options: Any,
    ) -> "HyptransTokenizer":
        """Load the tokenizer of a model folder, or of a model of this package or of the hub.

        Raises:
            UserError: there is no such model, or its files are damaged.
        """
        place = locate(pretrained_model_name_or_path, revision=revision, token=token)
        found = folder.read(place, with_parameters=False)
        options = {"model_max_length": found.options.get("max_source_positions"), **options}
        # of the library's options, those that a caller may set when a folder is read
        known = ("model_max_length", "truncation_side")
        chosen = {name: options[name] for name in known if options.get(name) is not None}
        return cls(found.languages, found.dictionaries, found.text, **chosen)

    @classmethod
    def from_data(
        cls, data: str | os.PathLike[str], source: str, target: str, **options: Any
    ) -> "HyptransTokenizer":
        """Make the tokenizer for a folder that ``hyptrans prepare`` wrote.

        Raises:
            UserError: ``hyptrans prepare`` did not write the folder.
        """
        place, languages = Path(data), (source, target)
        rules = text.from_data(place, languages, {}, moses=False)
        pair = contents.dictionaries(contents.data_bin(place), languages)
        return cls(languages, pair, rules, **options)

    @property
    def vocab_size(self) -> int:
        return len(self.dictionaries[self._side])

    def get_vocab(self) -> dict[str, int]:
        return dict(self.dictionaries[self._side].indices)

    def build_inputs_with_special_tokens(
        self, token_ids_0: list[int], token_ids_1: list[int] | None = None
    ) -> list[int]:
        """Return a sentence's tokens with the end of the sentence.

        Raises:
            UserError: a pair of sentences is given.
        """
        if token_ids_1 is not None:
            raise UserError("a model translates a sentence, not a pair: name the other text_target")
        return [*token_ids_0, self.dictionaries[0].eos()]

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        return self._join(" ".join(tokens))

    def save_vocabulary(
        self, save_directory: str, filename_prefix: str | None = None
    ) -> tuple[str, ...]:
        """Write dictionaries and subword model; the model writes the folder's other files."""
        parts = (self.languages, self.dictionaries, self.rules)
        return tuple(map(str, folder.write_text(*parts, Path(save_directory))))

    def _tokenize(self, text: str, **_: Any) -> list[str]:
        if self._side not in self.cache:
            words = self.dictionaries[self._side]
            known = frozenset(words.symbols[words.nspecial :])
            self.cache[self._side] = self.rules.encoder(self._side, known)
        return self.cache[self._side](text)

    def _convert_token_to_id(self, token: str) -> int:
        return self.dictionaries[self._side].index(token)

    def _convert_id_to_token(self, index: int) -> str:
        return self.dictionaries[1][index]

    def _switch_to_input_mode(self) -> None:
        self._side = 0

    def _switch_to_target_mode(self) -> None:
        self._side = 1
