"""The base class of translators from raw text to raw text, by any engine; imports no torch."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, overload

from hyptrans.inference.batches import by_length, filled
from hyptrans.inference.beams import Array, Found
from hyptrans.inference.contents import Contents, check_alike
from hyptrans.inference.options import (
    BATCH_TOKENS,
    LENGTH_STEP,
    SearchOptions,
    Settings,
    decide,
    limits,
    prefixes,
)
from hyptrans.inference.results import Hypothesis
from hyptrans.inference.sentences import Language, Texts
from hyptrans.support.errors import UserError

if TYPE_CHECKING:
    from typing_extensions import Unpack


class TextTranslator(ABC):
    """The part that translators by torch and ONNX share: text, dictionaries, batches, options.

    Args:
        contents: contents of the model, or of each model of an ensemble.
        longest: most tokens of a source and of a target, their ends included.

    Raises:
        UserError: parts of the contents do not fit together.
    """

    def __init__(self, contents: Sequence[Contents], longest: tuple[int, int]) -> None:
        first = contents[0]
        check_alike(contents)
        self.architecture = " + ".join(one.architecture for one in contents)
        self.languages = first.languages
        self.options, self.facts = dict(first.options), dict(first.facts)
        self.dictionary_sizes = (len(first.dictionaries[0]), len(first.dictionaries[1]))
        self._longest = longest
        try:
            self._source, self._target = (self._language(first, side) for side in (0, 1))
            self._join = first.text.decoder()
        except UserError as error:
            raise UserError(f"{first.place} cannot be used: {error}") from error

    @abstractmethod
    def _search(
        self, source: Array, longest: int, settings: Settings, prefix: Array
    ) -> list[list[Found]]:
        """Return the hypotheses of each row of source tokens, best first.

        Shapes: source ``[B, S]``, padded on the left, prefix ``[B, P]``, padded on the right.
        """

    @overload
    def translate(self, sources: str, **options: "Unpack[SearchOptions]") -> str: ...  # type: ignore[overload-overlap]
    @overload
    def translate(
        self, sources: Iterable[str], **options: "Unpack[SearchOptions]"
    ) -> list[str]: ...
    def translate(self, sources: Texts, **options: "Unpack[SearchOptions]") -> Any:
        """Translate sentences by beam search or by sampling.

        Args:
            sources: raw text, one sentence or several.
            options: see :class:`~hyptrans.inference.options.SearchOptions`; the most used are
                ``beam`` and ``length_penalty``.

        Raises:
            TypeError: a source is not text, or an option does not exist.
            UserError: a sentence is longer than the model takes, or an option is out of range.
        """
        several = [sources] if isinstance(sources, str) else sources
        texts = [found[0].text for found in self.n_best(several, 1, **options)]
        return texts[0] if isinstance(sources, str) else texts

    @overload
    def n_best(  # type: ignore[overload-overlap]
        self, sources: str, n: int | None = None, **options: "Unpack[SearchOptions]"
    ) -> list[Hypothesis]: ...
    @overload
    def n_best(
        self, sources: Iterable[str], n: int | None = None, **options: "Unpack[SearchOptions]"
    ) -> list[list[Hypothesis]]: ...
    def n_best(
        self, sources: Texts, n: int | None = None, **options: "Unpack[SearchOptions]"
    ) -> Any:
        """Return the ``n`` best translations of each sentence, best first.

        The options are those of :meth:`translate`.

        By default ``n`` is the beam size. There are fewer if beam search found fewer, and an empty
        text has one empty translation.

        Raises:
            TypeError: a source is not text, or an option does not exist.
            UserError: a sentence is longer than the model takes, or an option is out of range.
        """
        settings = decide(options, n)
        rows = self._source.rows(sources)
        longest = limits(rows, options, self._target.longest - 1)
        begun = prefixes(options, self._target, longest)
        found = [[Hypothesis("", 0.0, 0.0, ())] for _ in rows]
        tokens, shown = options.get("batch_tokens") or BATCH_TOKENS, options.get("progress")
        for batch in by_length([*map(len, rows)], tokens, "translate", shown, step=LENGTH_STEP):
            source = filled([rows[i] for i in batch], self._source.words, left=True)
            prefix = filled([begun[i][0] for i in batch], self._target.words, left=False)
            made = self._search(source, longest[batch[0]], settings, prefix)
            for i, hypotheses in zip(batch, made, strict=True):
                found[i] = [self._hypothesis(one, begun[i][1]) for one in hypotheses[:n]]
        return found[0] if isinstance(sources, str) else found

    @property
    def max_tokens(self) -> int:
        """Most subwords of a source, the end of the sentence included."""
        return self._source.longest

    def too_long(self, sources: Sequence[str]) -> dict[int, int]:
        """Return the sentences that are too long for the model: index -> number of tokens."""
        return self._source.too_long(sources)

    def _language(self, contents: Contents, side: int) -> Language:
        words = contents.dictionaries[side]
        cut = contents.text.encoder(side, frozenset(words.symbols[words.nspecial :]))
        return Language(("source", "target")[side], words, cut, self._longest[side])

    def _hypothesis(self, found: Found, prefix: tuple[str, ...]) -> Hypothesis:
        eos = self._target.words.eos()
        made = self._target.subwords([t for t in found.tokens.tolist() if t != eos])
        subwords = (*prefix, *made[len(prefix) :])
        text, each = self._join(" ".join(subwords)), tuple(found.scores.tolist())
        return Hypothesis(text, found.score, float(found.scores.sum()), subwords, each)
