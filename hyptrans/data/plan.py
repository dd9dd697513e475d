"""A command's plan: the sets, where their pairs come from, and what happens to them."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hyptrans.data.clean import CleanRule
from hyptrans.support.steps import Step


@dataclass
class Tally:
    """Counts made while reading.

    Attributes:
        parts: number of pairs by file.
        left_out: number of lines that are no text, by reason; only one side is counted.
    """

    parts: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class PairSource:
    """A source of pairs of lines, which yields the same pairs at every reading.

    Attributes:
        place: where the pairs are, for messages.
        read: yields (source, target) lines and counts their origins in a tally.
        inputs: files that hold only this set.
    """

    place: str
    read: Callable[[Tally], Iterator[tuple[str, str]]]
    inputs: Sequence[Path] = ()


@dataclass(frozen=True)
class Job:
    """The options that all commands share.

    Attributes:
        command: the command without the options that change no byte of the output.
        options: the same, with the bare names of files and folders.
        vocab_size: number of merges for subword-nmt, of pieces for sentencepiece.
        size_adapts: whether ``vocab_size`` is a default that adapts to what the text supports.
        character_coverage: coverage of the pieces, as in ``learn.learn``.
    """

    command: tuple[str, ...]
    options: tuple[str, ...]
    source_lang: str
    target_lang: str
    out: Path
    bpe: str
    vocab_size: int
    raw_text: bool
    joined_dictionary: bool
    workers: int
    keep_intermediate: bool
    overwrite: bool
    size_adapts: bool = False
    character_coverage: float | None = None

    @property
    def languages(self) -> tuple[str, str]:
        """Source and target language."""
        return self.source_lang, self.target_lang

    @property
    def work(self) -> Path:
        """The folder to which steps write their outputs and records."""
        return self.out / "intermediate"


@dataclass(frozen=True)
class Plan:
    """A data set to prepare.

    Attributes:
        sets: the source of each set: ``train``, ``valid`` (unless held out), ``test`` ...
        text: the flags of ``TextSteps`` for each set; a set not named here keeps its raw text.
        clean_text: rule for the training text before subwords, None to keep all.
        held_out: every n-th training pair goes to ``valid``, 0 for none.
        clean_subwords: rule for training and validation pairs after subwords, None to keep all.
        before: steps that must run before the sources can be read: downloads and unpacking.
    """

    sets: Mapping[str, PairSource]
    text: Mapping[str, Mapping[str, bool]] = field(default_factory=dict)
    clean_text: CleanRule | None = None
    held_out: int = 0
    clean_subwords: CleanRule | None = None
    before: Sequence[Step] = ()
