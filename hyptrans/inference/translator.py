"""A model that translates, scores and encodes raw text."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from hyptrans.geometry.space import Space
from hyptrans.inference.architecture import build
from hyptrans.inference.batches import by_length, padded, rounded_up
from hyptrans.inference.contents import Contents
from hyptrans.inference.defaults import BATCH_TOKENS, BEAM, LENPEN
from hyptrans.inference.results import Encoding, Hypothesis
from hyptrans.inference.search import Found, Options, search
from hyptrans.inference.sentences import Language, check_at_least_one, check_bounded
from hyptrans.support.errors import UserError

MOST_LENPEN = 10.0
"""Power of a length by which a score of float32 is divided and is still a number, not 0."""
LENGTH_LIMIT = (2, 10)
"""A translation has at most this many times the tokens of its source, and this many more."""
_STEP = 8
"""For that, tokens of a source are rounded up to a multiple of this."""


class Translator:
    """A translation model with its text processing; :func:`hyptrans.load` makes one.

    Results come in the order of the sentences and do not depend on how often it is asked. Text
    that is empty, or has spaces only, has an empty translation.

    Args:
        contents: what the model is made of.
        device: where it computes.

    Raises:
        UserError: parts of the contents do not go together, or the device cannot be used.

    Attributes:
        architecture: name, as of ``--arch``.
        languages: source and target.
        options: of the architecture.
        dictionary_sizes: symbols of source and target.
        facts: what is known of the training: updates, command, data, scores.
        model: the ``EncoderDecoder``, in evaluation.
    """

    def __init__(self, contents: Contents, device: str = "cpu") -> None:
        self.architecture, self.languages = contents.architecture, contents.languages
        self.options, self.facts = dict(contents.options), dict(contents.facts)
        self.dictionary_sizes = (len(contents.dictionaries[0]), len(contents.dictionaries[1]))
        try:
            self.model: Any = build(
                contents.architecture, contents.options, contents.dictionaries, contents.parameters
            )
            self._source, self._target = (self._language(contents, side) for side in (0, 1))
            self._join = contents.text.decoder()
        except UserError as error:
            raise UserError(f"{contents.place} cannot be used: {error}") from error
        self.device = torch.device("cpu")
        self.to(device)

    def to(self, device: str | torch.device) -> "Translator":
        """Compute on another device, such as ``cuda``; returns the same object.

        Raises:
            TypeError: something else than a device or its name.
            UserError: there is no such device here; the model stays where it was.
        """
        if not isinstance(device, (str, torch.device)):
            raise TypeError(f"a device is a name such as cuda, got {type(device).__name__}")
        try:
            wanted = torch.device(device)
            if wanted.type == "meta":
                raise RuntimeError("nothing is computed there")
            self.model.to(wanted)
        except (RuntimeError, AssertionError) as error:
            # a part of it may be there already
            self.model.to(self.device)
            reason = str(error).partition("\n")[0]
            raise UserError(f"device {device} cannot be used ({reason})") from error
        self.device = wanted
        return self

    def translate(
        self,
        sources: Sequence[str],
        *,
        beam: int = BEAM,
        lenpen: float = LENPEN,
        batch_tokens: int = BATCH_TOKENS,
        progress: bool | None = None,
    ) -> list[str]:
        """Translate sentences by beam search.

        Args:
            sources: raw text, a sentence each.
            beam: hypotheses that are kept of each sentence.
            lenpen: above 1 favors long translations, below 1 short ones.
            batch_tokens: most source tokens that go through the model at once.
            progress: show how many are done; by default for long lists on a terminal.

        Raises:
            TypeError: something else than a list of text.
            UserError: a sentence is longer than the model takes, or an option out of range.
        """
        found = self.n_best(
            sources, 1, beam=beam, lenpen=lenpen, batch_tokens=batch_tokens, progress=progress
        )
        return [best[0].text for best in found]

    def n_best(
        self,
        sources: Sequence[str],
        n: int = BEAM,
        *,
        beam: int = BEAM,
        lenpen: float = LENPEN,
        batch_tokens: int = BATCH_TOKENS,
        progress: bool | None = None,
    ) -> list[list[Hypothesis]]:
        """The ``n`` best translations of each sentence, best first; options as of `translate`.

        There are fewer where beam search found fewer, and one, empty, of empty text.

        Raises:
            TypeError: something else than a list of text.
            UserError: a sentence is longer than the model takes, or an option out of range.
        """
        check_at_least_one(n=n, beam=beam, batch_tokens=batch_tokens)
        if n > beam:
            raise UserError(f"n={n} translations need a beam of at least as many, got beam={beam}")
        check_bounded(MOST_LENPEN, lenpen=lenpen)
        rows = self._source.rows(sources)
        options = Options(beam=int(beam), lenpen=float(lenpen))
        empty = Hypothesis("", 0.0, 0.0, ())
        found = [[empty] for _ in rows]
        times, more = LENGTH_LIMIT
        sizes = _sizes(rows)
        for batch in by_length(sizes, batch_tokens, "translate", progress, step=_STEP):
            # of the sentence, not of the longest that happens to be in its batch, as fairseq has it
            longest = times * rounded_up(sizes[batch[0]], _STEP) + more
            made = search([self.model], self._input(rows, batch), longest, options)
            for i, hypotheses in zip(batch, made, strict=True):
                found[i] = [self._hypothesis(one) for one in hypotheses[:n]]
        return found

    def score(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        *,
        batch_tokens: int = BATCH_TOKENS,
        progress: bool | None = None,
    ) -> list[float]:
        """Log-probabilities, base e, of given translations, the ends of the sentences included.

        A text is cut into subwords anew, as in training; a search may have made the same text of
        others, and then has another probability for it.

        Raises:
            TypeError: something else than lists of text.
            UserError: lists of different length, or a sentence longer than the model takes.
        """
        check_at_least_one(batch_tokens=batch_tokens)
        rows, wanted = self._source.rows(sources), self._target.rows(targets)
        if len(rows) != len(wanted):
            raise UserError(f"{len(rows)} sources cannot have {len(wanted)} targets: one for each")
        # an empty source is its end of sentence alone
        rows = [row or [self._source.words.eos()] for row in rows]
        wanted = [row or [self._target.words.eos()] for row in wanted]
        scores = [0.0] * len(rows)
        sizes = list(map(max, _sizes(rows), _sizes(wanted)))
        for batch in by_length(sizes, batch_tokens, "score", progress):
            found = self._log_probabilities(rows, wanted, batch)
            for i, value in zip(batch, found.tolist(), strict=True):
                scores[i] = value
        return scores

    def encode(
        self,
        sources: Sequence[str],
        *,
        batch_tokens: int = BATCH_TOKENS,
        progress: bool | None = None,
    ) -> list[Encoding]:
        """The encoder's states of all layers for each sentence, with the spaces they lie in.

        Raises:
            TypeError: something else than a list of text.
            UserError: a sentence is longer than the model takes.
        """
        check_at_least_one(batch_tokens=batch_tokens)
        rows = [row or [self._source.words.eos()] for row in self._source.rows(sources)]
        spaces, encoder = self.spaces, self.model.encoder
        found: list[Any] = [None] * len(rows)
        for batch in by_length(_sizes(rows), batch_tokens, "encode", progress):
            with torch.inference_mode():
                states = torch.stack(encoder(self._input(rows, batch)).states)
            for i, own in zip(batch, states.unbind(1), strict=True):
                # padding is on the left
                own_states = own[:, -len(rows[i]) :].clone()
                found[i] = Encoding(self._source.subwords(rows[i]), own_states, spaces)
        return found

    @property
    def spaces(self) -> tuple[Space, ...]:
        """The space of each of the encoder's states, from the embeddings to the last layer."""
        return tuple(self.model.encoder.state_spaces())

    @property
    def max_tokens(self) -> int:
        """Most subwords of a source, the end of the sentence included."""
        return self._source.longest

    def too_long(self, sources: Sequence[str]) -> dict[int, int]:
        """Sentences that the model cannot take: their places in the list, and their subwords."""
        return self._source.too_long(sources)

    def _language(self, contents: Contents, side: int) -> Language:
        words = contents.dictionaries[side]
        cut = contents.text.encoder(side, frozenset(words.symbols[words.nspecial :]))
        longest = (self.model.encoder, self.model.decoder)[side].longest
        return Language(("source", "target")[side], words, cut, longest)

    def _input(self, rows: Sequence[Sequence[int]], batch: Sequence[int]) -> Tensor:
        return padded([rows[i] for i in batch], self._source.words, left=True).to(self.device)

    def _hypothesis(self, found: Found) -> Hypothesis:
        eos = self._target.words.eos()
        subwords = self._target.subwords([t for t in found.tokens.tolist() if t != eos])
        text = self._join(" ".join(subwords))
        return Hypothesis(text, found.score, float(found.scores.sum()), subwords)

    @torch.inference_mode()
    def _log_probabilities(
        self, rows: list[list[int]], wanted: list[list[int]], batch: list[int]
    ) -> Tensor:
        words = self._target.words
        targets = padded([wanted[i] for i in batch], words)
        # each token is predicted from those before it, the first from the end of a sentence
        before = [[words.eos(), *wanted[i][:-1]] for i in batch]
        previous = padded(before, words).to(self.device)
        found = self.model(self._input(rows, batch), previous).log_softmax(-1)
        targets = targets.to(self.device)
        each = found.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
        return each.masked_fill(targets.eq(words.pad()), 0.0).double().sum(1)


def _sizes(rows: Sequence[Sequence[int]]) -> list[int]:
    return [len(row) for row in rows]
