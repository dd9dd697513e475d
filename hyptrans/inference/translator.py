"""A model or an ensemble that translates, scores and encodes raw text."""

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, overload

import torch
from torch import Tensor

from hyptrans.geometry.space import Space
from hyptrans.inference.architecture import build
from hyptrans.inference.batches import by_length, padded
from hyptrans.inference.beams import Array, Found
from hyptrans.inference.contents import Contents
from hyptrans.inference.options import BATCH_TOKENS, BatchOptions, Settings, check_names
from hyptrans.inference.results import Alignment, Encoding
from hyptrans.inference.search import search
from hyptrans.inference.sentences import Texts, check_at_least_one
from hyptrans.inference.text_translator import TextTranslator
from hyptrans.support.errors import UserError

if TYPE_CHECKING:
    from typing_extensions import Unpack

_DTYPES = {str(dtype).removeprefix("torch."): dtype for dtype in (torch.float32, torch.float64)}


class Translator(TextTranslator):
    """A translation model with its text processing; :func:`hyptrans.load` makes one.

    Every method takes one text and returns one result, or any number of texts and returns a list in
    the order of the texts. Except for samples, the same call gives the same result. An empty text,
    or one of spaces only, has an empty translation.

    Args:
        contents: contents of the model, or of each model of an ensemble.
        device: device to compute on; ``auto`` takes ``cuda`` if available.
        dtype: number format to compute in, ``float32`` or ``float64``.

    Raises:
        UserError: parts of the contents do not fit together, or the device cannot be used.

    Attributes:
        architecture: its name, as in ``--arch``; for an ensemble, all names.
        languages: source and target.
        options: the architecture's options; for an ensemble, those of the first model.
        dictionary_sizes: numbers of source and target symbols; likewise.
        facts: what is known of the training: updates, command, data, scores; likewise.
        models: each an ``EncoderDecoder`` in evaluation mode.
    """

    def __init__(
        self, *contents: Contents, device: str | torch.device = "cpu", dtype: Any = "float32"
    ) -> None:
        name = str(dtype).removeprefix("torch.")
        if name not in _DTYPES:
            raise UserError(f"dtype must be {' or '.join(_DTYPES)}, got {name[:40]}")
        self.models: list[Any] = []
        try:
            for one in contents:
                parts = (one.architecture, one.options, one.dictionaries, one.parameters)
                self.models.append(build(*parts).to(_DTYPES[name]))
        except UserError as error:
            raise UserError(f"{one.place} cannot be used: {error}") from error
        sides = [(model.encoder.longest, model.decoder.longest) for model in self.models]
        super().__init__(contents, (min(side[0] for side in sides), min(side[1] for side in sides)))
        self.to(device)

    @property
    def model(self) -> Any:
        """The single model.

        Raises:
            UserError: this is an ensemble.
        """
        if len(self.models) > 1:
            raise UserError("an ensemble has no states of its own: load one of its models for them")
        return self.models[0]

    def __repr__(self) -> str:
        numbers = [p for model in self.models for p in model.parameters()]
        dtype = str(numbers[0].dtype).removeprefix("torch.")
        return (
            f"<Translator from {self.languages[0]} to {self.languages[1]}: {self.architecture}, "
            f"{sum(p.numel() for p in numbers):,} parameters, {dtype} on {self.device}>"
        )

    def to(self, device: str | torch.device) -> "Translator":
        """Move to another device, such as ``cuda``; return the same object.

        Raises:
            TypeError: ``device`` is neither a device nor a name.
            UserError: the device cannot be used; the model stays where it was.
        """
        if not isinstance(device, (str, torch.device)):
            raise TypeError(f"a device is a name such as cuda, got {type(device).__name__}")
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        try:
            # before any model moves; on torch's device meta there are no numbers
            torch.zeros(1, device=device).item()
        except (RuntimeError, AssertionError) as error:
            reason = str(error).partition("\n")[0]
            raise UserError(f"device {device} cannot be used ({reason})") from error
        self.device = torch.device(device)
        for model in self.models:
            model.to(self.device)
        return self

    @overload
    def score(self, sources: str, targets: str, **options: "Unpack[BatchOptions]") -> float: ...  # type: ignore[overload-overlap]
    @overload
    def score(
        self, sources: Iterable[str], targets: Iterable[str], **options: "Unpack[BatchOptions]"
    ) -> list[float]: ...
    def score(self, sources: Texts, targets: Texts, **options: "Unpack[BatchOptions]") -> Any:
        """Return log-probabilities, base e, of given translations, sentence ends included.

        Texts are split into subwords anew, as in training. A search may have built the same text
        from other subwords and then reports another probability.

        Raises:
            TypeError: a source or target is not text.
            UserError: the lists differ in length, or a sentence is longer than the model takes.
        """
        made = self._forced(sources, targets, options, look=False)
        scores = [math.fsum(one.log_probabilities) for one in made]
        return scores[0] if isinstance(sources, str) else scores

    @overload
    def align(self, sources: str, targets: str, **options: "Unpack[BatchOptions]") -> Alignment: ...  # type: ignore[overload-overlap]
    @overload
    def align(
        self, sources: Iterable[str], targets: Iterable[str], **options: "Unpack[BatchOptions]"
    ) -> list[Alignment]: ...
    def align(self, sources: Texts, targets: Texts, **options: "Unpack[BatchOptions]") -> Any:
        """Return attention and log-probabilities for given translations; see :meth:`score`.

        Raises:
            TypeError: a source or target is not text.
            UserError: the lists differ in length, or a sentence is longer than the model takes.
        """
        made = self._forced(sources, targets, options, look=True)
        return made[0] if isinstance(sources, str) else made

    @overload
    def encode(self, sources: str, **options: "Unpack[BatchOptions]") -> Encoding: ...  # type: ignore[overload-overlap]
    @overload
    def encode(
        self, sources: Iterable[str], **options: "Unpack[BatchOptions]"
    ) -> list[Encoding]: ...
    def encode(self, sources: Texts, **options: "Unpack[BatchOptions]") -> Any:
        """Return each sentence's encoder states in all layers, and the spaces that they lie in.

        Raises:
            TypeError: a source is not text.
            UserError: a sentence is longer than the model takes, or the model is an ensemble.
        """
        spaces, encoder = self.spaces, self.model.encoder
        rows = [row or [self._source.words.eos()] for row in self._source.rows(sources)]
        found: list[Any] = [None] * len(rows)
        with _on(self.device):
            for batch in self._batches([*map(len, rows)], "encode", options):
                # moved to the CPU, whose memory holds more than a device's
                states = torch.stack(encoder(self._input(rows, batch)).states).cpu()
                for i, own in zip(batch, states.unbind(1), strict=True):
                    # padding is on the left
                    own_states = own[:, -len(rows[i]) :].clone()
                    found[i] = Encoding(self._source.subwords(rows[i]), own_states, spaces)
        return found[0] if isinstance(sources, str) else found

    @property
    def spaces(self) -> tuple[Space, ...]:
        """The spaces of the encoder's states, from the embeddings to the last layer."""
        return tuple(self.model.encoder.state_spaces())

    def _batches(
        self, sizes: Sequence[int], name: str, options: BatchOptions
    ) -> Iterator[list[int]]:
        check_names(options, BatchOptions)
        tokens = options.get("batch_tokens", BATCH_TOKENS)
        check_at_least_one(batch_tokens=tokens)
        return by_length(sizes, tokens, name, options.get("progress"))

    def _search(
        self, source: Array, longest: int, settings: Settings, prefix: Array
    ) -> list[list[Found]]:
        with _on(self.device):
            tokens = torch.from_numpy(source).to(self.device)
            return search(self.models, tokens, longest, settings, prefix)

    def _input(self, rows: Sequence[Sequence[int]], batch: Sequence[int]) -> Tensor:
        return padded([rows[i] for i in batch], self._source.words, left=True).to(self.device)

    def _forced(
        self, sources: Texts, targets: Texts, options: BatchOptions, *, look: bool
    ) -> list[Alignment]:
        """Return alignments with log-probabilities; only ``look`` adds subwords and weights."""
        if isinstance(sources, str) != isinstance(targets, str):
            raise TypeError("one source has one target, and a list of sources a list of targets")
        rows, wanted = self._source.rows(sources), self._target.rows(targets)
        if len(rows) != len(wanted):
            raise UserError(
                f"{len(rows)} sources cannot have {len(wanted)} targets: give one for each"
            )
        # an empty text becomes its end of sentence alone
        rows = [row or [self._source.words.eos()] for row in rows]
        wanted = [row or [self._target.words.eos()] for row in wanted]
        found: list[Any] = [None] * len(rows)
        sizes = [max(map(len, pair)) for pair in zip(rows, wanted, strict=True)]
        with _on(self.device):
            for batch in self._batches(sizes, "score", options):
                source, own = self._input(rows, batch), [wanted[i] for i in batch]
                each, weights = _force(self.models, source, own, look=look)
                for place, i in enumerate(batch):
                    length = len(wanted[i])
                    found[i] = Alignment(
                        self._source.subwords(rows[i]) if look else (),
                        self._target.subwords(wanted[i]) if look else (),
                        weights[place, :length, -len(rows[i]) :].clone(),
                        tuple(each[place, :length].tolist()),
                    )
        return found


def _force(
    models: Sequence[Any], source: Tensor, targets: Sequence[Sequence[int]], *, look: bool
) -> tuple[Tensor, Tensor]:
    """Return tokens' log-probabilities ``[B, T]`` and source weights ``[B, T, S]``, on the CPU.

    Args:
        models: each an ``EncoderDecoder`` for the same dictionaries; probabilities and weights are
            averaged.
        source: tokens ``[B, S]``, padded on the left.
        targets: tokens of each row, with the end of the sentence.
        look: compute the weights; without it they have no columns.
    """
    words = models[0].decoder.dictionary
    # each token is predicted from those before it, the first from the end-of-sentence token
    before = [[words.eos(), *row[:-1]] for row in targets]
    wanted, previous = (padded(rows, words).to(source.device) for rows in (targets, before))
    each, weights = [], []
    for model in models:
        memory = model.encoder.memory(source)
        states = model.decoder(previous, *memory)
        found = model.decoder.logits(states[-1]).log_softmax(-1)
        each.append(found.gather(-1, wanted.unsqueeze(-1)).squeeze(-1).double())
        none = found.new_zeros(*wanted.shape, 0)
        weights.append(model.decoder.look(previous, states, *memory) if look else none)
    mean = torch.stack(each).logsumexp(0) - math.log(len(models))
    return mean.cpu(), torch.stack(weights).mean(0).cpu()


@contextmanager
def _on(device: torch.device) -> Iterator[None]:
    """Compute on a device without gradients, whatever the caller's default device is."""
    elsewhere = torch.get_default_device().type != "cpu"
    with torch.inference_mode(), device if elsewhere else nullcontext():
        yield
