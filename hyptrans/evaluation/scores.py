"""BLEU and chrF by sacreBLEU itself, each with its signature; translations from files."""

import argparse
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sacrebleu.metrics import BLEU, CHRF

from hyptrans.support.errors import UserError, one_line
from hyptrans.support.lines import read_lines

DEFAULT_TOKENIZER = "13a"
_TOKENIZERS = {
    **dict.fromkeys(("zh", "zho", "cmn", "yue"), "zh"),
    **dict.fromkeys(("ja", "jpn"), "ja-mecab"),
    **dict.fromkeys(("ko", "kor"), "ko-mecab"),
}
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u4e00-\u9fff]")
"""Characters of Thai, Lao, Burmese, Khmer, Japanese and Chinese."""
_OF_FAIRSEQ = re.compile(r"[SHD]-[0-9]+\t")
"""How a line of a source, of a translation in tokens or of one in words begins."""
# as many digits as any number of sentences has: int takes no more than some thousand
_TRANSLATION = re.compile(r"D-(?P<number>[0-9]{1,18})\t[^\t]*\t(?P<text>.*)", re.DOTALL)
"""Number of the sentence, score, text."""
_SHOWN = 40
"""Characters of a line in a message."""
TRANSLATIONS_HELP = "translations, one a line or as fairseq-generate writes them"
"""Help of an argument that :func:`read_translations` takes."""


@dataclass(frozen=True)
class Score:
    """A score of sacreBLEU's, never without its signature."""

    value: float
    signature: str


def tokenizer_for(language: str) -> str:
    """The name of sacreBLEU's tokenizer for a target language, in any code for it.

    ``13a`` splits at spaces, which Chinese and Japanese do not have, and which Korean has between
    phrases: it finds next to nothing right in them.
    """
    return _TOKENIZERS.get(re.split("[-_]", language.lower())[0], DEFAULT_TOKENIZER)


def tokenizer_of(references: Path, lines: Iterable[str], given: str | None = None) -> str:
    """The tokenizer of a file of references, by the language that its name ends in.

    Args:
        references: the file, as ``test.zh`` or ``test.zh.gz``.
        lines: its text. Where that has few spaces and the tokenizer needs them, a warning says so.
        given: the one that was typed, which goes before.
    """
    chosen = given or tokenizer_for(Path(references.name.removesuffix(".gz")).suffix[1:])
    text = "".join(lines)
    if chosen == DEFAULT_TOKENIZER and 2 * len(_UNSPACED.findall(text)) > len(text):
        sys.stderr.write(
            f"warning: {one_line(str(references))} is in a script that puts no spaces between "
            f"words, at which {chosen} splits: name another with --tokenize, as zh or ja-mecab\n"
        )
    return chosen


def bleu_metric(
    tokenize: str = DEFAULT_TOKENIZER,
    *,
    lowercase: bool = False,
    references: Sequence[Sequence[str]] | None = None,
) -> BLEU:
    """SacreBLEU's BLEU with a tokenizer.

    Raises:
        UserError: the tokenizer is not installed; names what installs it.
    """
    try:
        return BLEU(lowercase=lowercase, tokenize=tokenize, references=references)
    # of MeCab, and of models that are fetched the first time
    except (RuntimeError, ImportError, OSError) as error:
        extra = tokenize.partition("-mecab")
        how = f"install it with pip install 'sacrebleu[{extra[0]}]'" if extra[1] else str(error)
        message = f"sacreBLEU's tokenizer {tokenize} cannot be used: {how}"
        raise UserError(message) from error


def bleu(
    translations: Sequence[str],
    references: Sequence[str],
    *,
    lowercase: bool = False,
    tokenize: str = DEFAULT_TOKENIZER,
) -> Score:
    """BLEU of raw text.

    Args:
        translations: a line each.
        references: one for each.
        lowercase: take no notice of case.
        tokenize: sacreBLEU's name of a tokenizer; :func:`tokenizer_for` knows the language's.
    """
    return score_by(bleu_metric(tokenize, lowercase=lowercase), translations, references)


def chrf(
    translations: Sequence[str], references: Sequence[str], *, lowercase: bool = False
) -> Score:
    """ChrF of raw text."""
    return score_by(CHRF(lowercase=lowercase), translations, references)


def score_by(metric: BLEU | CHRF, translations: Sequence[str], references: Sequence[str]) -> Score:
    """A metric's score, to two digits."""
    found = metric.corpus_score(translations, [references]).score
    return Score(round(found, 2), metric.get_signature().format(short=False))


def add_tokenize(parser: argparse.ArgumentParser) -> None:
    """Add ``--tokenize``; :func:`tokenizer_of` takes what was typed."""
    about = "sacreBLEU's tokenizer for BLEU (default: zh, ja-mecab or ko-mecab where the name of "
    about += f"REF ends in that language, else {DEFAULT_TOKENIZER})"
    names = sorted(BLEU.TOKENIZERS)
    parser.add_argument("--tokenize", choices=names, metavar="NAME", help=about)


def read_translations(output: Path) -> list[str]:
    """The translations of a file: one a line, or the ``D-`` lines that ``fairseq-generate`` wrote.

    Raises:
        UserError: no such file, it is empty, or a translation is missing, cut or there twice.
    """
    lines = read_text(output)
    if any(map(_OF_FAIRSEQ.match, lines)):
        return list(_detokenized(output, lines))
    return lines


def read_text(path: Path) -> list[str]:
    r"""The lines of a text, which only ``\n`` ends.

    Raises:
        UserError: it is missing or empty, or is not text.
    """
    return list(read_lines(path))


def read_references(path: Path) -> list[str]:
    """The lines of references.

    Raises:
        UserError: the file is missing, is not text, or has none.
    """
    lines = read_text(path)
    if not any(map(str.strip, lines)):
        raise UserError(f"{path} has no text: name the references")
    return lines


def detokenized(output: Path) -> list[str]:
    """The translations of a file that ``fairseq-generate`` wrote: its ``D-`` lines, by number.

    Raises:
        UserError: there is none, or one is missing, cut or there twice.
    """
    return list(_detokenized(output, read_text(output)))


def _detokenized(output: Path, lines: Sequence[str]) -> Iterator[str]:
    found: dict[int, str] = {}
    for place, line in enumerate(lines, start=1):
        if not line.startswith("D-"):
            continue
        parts = _TRANSLATION.fullmatch(line)
        if parts is None:
            raise UserError(
                f"{output}, line {place} is not a whole D- line of fairseq-generate "
                f"({line[:_SHOWN]!r}); translate again if the file was cut"
            )
        number = int(parts["number"])
        if number in found:
            raise UserError(f"{output} has two translations of sentence {number}")
        found[number] = parts["text"]
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
