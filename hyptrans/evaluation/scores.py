"""BLEU and chrF by sacreBLEU itself, each with its signature; translations from files."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sacrebleu.metrics import BLEU, CHRF

from hyptrans.support.errors import UserError


@dataclass(frozen=True)
class Score:
    """A score of sacreBLEU's, never without its signature."""

    value: float
    signature: str


def bleu(translations: Sequence[str], references: Sequence[str]) -> Score:
    """BLEU of raw text."""
    return score_by(BLEU(), translations, references)


def chrf(translations: Sequence[str], references: Sequence[str]) -> Score:
    """ChrF of raw text."""
    return score_by(CHRF(), translations, references)


def score_by(metric: BLEU | CHRF, translations: Sequence[str], references: Sequence[str]) -> Score:
    """A metric's score, to two digits."""
    found = metric.corpus_score(translations, [references]).score
    return Score(round(found, 2), metric.get_signature().format(short=False))


def read_translations(output: Path) -> list[str]:
    """The translations of a file: one a line, or the ``D-`` lines that ``fairseq-generate`` wrote.

    Raises:
        UserError: no such file, or a translation is missing or there twice.
    """
    lines = read_text(output)
    if any(line.startswith(("S-", "H-", "D-")) and "\t" in line for line in lines):
        return list(_detokenized(output, lines))
    return lines


def read_text(path: Path) -> list[str]:
    """The lines of a text.

    Raises:
        UserError: it is missing, or is not text.
    """
    try:
        return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    except FileNotFoundError as error:
        raise UserError(f"{path} does not exist") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 text ({error.reason}); convert it") from error


def detokenized(output: Path) -> list[str]:
    """The translations of a file that ``fairseq-generate`` wrote: its ``D-`` lines, by number.

    Raises:
        UserError: there is none, or one is missing or there twice.
    """
    return list(_detokenized(output, read_text(output)))


def _detokenized(output: Path, lines: Sequence[str]) -> Iterator[str]:
    found: dict[int, str] = {}
    for line in lines:
        if line.startswith("D-"):
            number, _, text = line[2:].split("\t", 2)
            if int(number) in found:
                raise UserError(f"{output} has two translations of sentence {number}")
            found[int(number)] = text
    missing = set(range(len(found))) - found.keys()
    if missing or not found:
        first = min(missing, default=0)
        raise UserError(f"{output} has no translation (D- line) of sentence {first}")
    return (found[number] for number in range(len(found)))


def check_lengths(
    translations: Sequence[str], output: Path, lines: Sequence[str], references: Path
) -> None:
    """Hold the number of translations against that of references.

    Raises:
        UserError: they differ.
    """
    if len(lines) != len(translations):
        raise UserError(
            f"{output} has {len(translations)} translations for {len(lines)} lines of {references}"
        )
