"""The configuration of a model folder as a configuration of the library transformers."""

from typing import TYPE_CHECKING, Any

from transformers import PreTrainedConfig

from hyptrans.inference.architecture import check_options, fresh, require_known
from hyptrans.inference.contents import Contents
from hyptrans.inference.dictionary import Dictionary, Size
from hyptrans.inference.sharing import folder
from hyptrans.seq2seq.model import EncoderDecoder
from hyptrans.support.errors import UserError

if TYPE_CHECKING:
    from hyptrans.transformers.tokenizer import HyptransTokenizer

_OF_THE_DATA = ("license", "dataset")
"""Facts that stay true when a model's parameters change."""
_WORDS = Dictionary()


class HyptransConfig(PreTrainedConfig):
    """The contents of a model folder's ``config.json``.

    Attributes:
        architecture: its name, as in ``--arch``.
        options: the architecture's options that differ from its defaults.
        source_vocab_size: number of symbols in the source's dictionary.
        vocab_size: number of symbols in the target's dictionary.
    """

    model_type = folder.MODEL_TYPE

    architecture: str | None = None
    options: dict[str, Any] | None = None
    source_vocab_size: int | None = None
    vocab_size: int | None = None
    is_encoder_decoder: bool = True
    tie_word_embeddings: bool = True
    bos_token_id: int | None = _WORDS.bos()
    pad_token_id: int | None = _WORDS.pad()
    eos_token_id: int | None = _WORDS.eos()
    decoder_start_token_id: int | None = _WORDS.eos()

    @classmethod
    def of(
        cls, tokenizer: "HyptransTokenizer", architecture: str, **options: Any
    ) -> "HyptransConfig":
        """Make the configuration of a new model.

        Args:
            tokenizer: the tokenizer of the model's text.
            architecture: its name, as in ``--arch``.
            options: the architecture's options, by name.

        Raises:
            UserError: there is no such architecture or option, or the options do not fit the data.
        """
        kept = (tokenizer.languages, tokenizer.dictionaries)
        checked = check_options(require_known(architecture), options)
        if checked.get("share_all_embeddings") and kept[1][0] != kept[1][1]:
            raise UserError(
                "share_all_embeddings needs one dictionary for both languages: prepare the data "
                "with a joined dictionary"
            )
        return cls.of_contents(
            Contents("a new model", architecture, checked, *kept, {}, tokenizer.rules)
        )

    @classmethod
    def of_contents(cls, contents: Contents) -> "HyptransConfig":
        """Make the configuration of a model that was read; drop scores, which training outdates."""
        found = folder.as_json(contents, "full")
        facts = {name: contents.facts.get(name) for name in _OF_THE_DATA}
        found["facts"] = {name: fact for name, fact in facts.items() if fact is not None}
        return cls(**found)

    def build(self) -> EncoderDecoder:
        """Build a model with fresh parameters.

        Raises:
            UserError: the configuration is not that of a model folder, or its options are wrong.
        """
        if not (self.options is not None and self.source_vocab_size and self.vocab_size):
            raise UserError(
                "the configuration lacks the dictionaries' sizes, which earlier versions did not "
                "write: export the folder again with hyptrans export"
            )
        name = require_known(self.architecture)
        words = (Size(self.source_vocab_size), Size(self.vocab_size))
        return fresh(name, check_options(name, self.options), words)
