"""What a command asks for: the sets, where their pairs come from, and what happens to them."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hyptrans.data.clean import CleanRule
from hyptrans.support.steps import Step


@dataclass
class Tally:
    """Counts kept while reading.

    Attributes:
        parts: pairs by file.
        left_out: lines that are no text, by the reason; one side is counted.
    """

    parts: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class PairSource:
    """Somewhere pairs of lines can be read from, again and again the same.

    Attributes:
        place: where the pairs are, for messages.
        read: yields (source, target) lines and counts in a tally where they came from.
        inputs: files of this set alone.
    """

    place: str
    read: Callable[[Tally], Iterator[tuple[str, str]]]
    inputs: Sequence[Path] = ()


@dataclass(frozen=True)
class Job:
    """The options all commands share.

    Attributes:
        command: the command without the options that change no byte of the output.
        options: the same, with the mere names of files and folders.
        vocab_size: merges for subword-nmt, pieces for sentencepiece.
        size_adapts: it is a default, which gives way to what the text supports.
        character_coverage: of the pieces, as ``learn.learn`` has it.
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
        """Source and target."""
        return self.source_lang, self.target_lang

    @property
    def work(self) -> Path:
        """The folder in which steps write, with their records."""
        return self.out / "intermediate"


@dataclass(frozen=True)
class Plan:
    """A data set to prepare.

    Attributes:
        sets: where each set comes from: ``train``, ``valid`` (unless held out), ``test`` ...
        text: per set, the flags of ``TextSteps``; a set that is not named keeps its raw text.
        clean_text: rule for the training text before subwords, None to keep all.
        held_out: every n-th training pair goes to ``valid``, 0 for none.
        clean_subwords: rule for training and validation pairs after subwords, None to keep all.
        before: steps after which the sources can be read: downloads and unpacking.
    """

    sets: Mapping[str, PairSource]
    text: Mapping[str, Mapping[str, bool]] = field(default_factory=dict)
    clean_text: CleanRule | None = None
    held_out: int = 0
    clean_subwords: CleanRule | None = None
    before: Sequence[Step] = ()
