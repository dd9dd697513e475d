"""BLEU and chrF by sacreBLEU, with signatures; read translations and references from files."""

import argparse
import re
import sys
from collections.abc import Iterable, Sequence
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
"""Beginning of a line with a source, a translation in tokens, or a detokenized translation."""
# no more digits than int takes
_TRANSLATION = re.compile(r"D-(?P<number>[0-9]{1,18})\t[^\t]*\t(?P<text>.*)", re.DOTALL)
"""The sentence's number, its score and its text."""
TRANSLATIONS_HELP = "translations, one per line or as fairseq-generate writes them"


@dataclass(frozen=True)
class Score:
    """A score by sacreBLEU, always with its signature."""

    value: float
    signature: str


def tokenizer_for(language: str) -> str:
    """Return the name of sacreBLEU's tokenizer for a target language, given by any of its codes.

    ``13a`` splits at spaces, which Chinese and Japanese lack and Korean puts between phrases, so it
    finds almost no matches in them.
    """
    return _TOKENIZERS.get(re.split("[-_]", language.lower())[0], DEFAULT_TOKENIZER)


def bleu_metric(
    tokenize: str = DEFAULT_TOKENIZER,
    *,
    lowercase: bool = False,
    references: Sequence[Sequence[str]] | None = None,
) -> BLEU:
    """Return sacreBLEU's BLEU metric with a tokenizer.

    Raises:
        UserError: the tokenizer is not installed; the message says how to install it.
    """
    try:
        return BLEU(lowercase=lowercase, tokenize=tokenize, references=references)
    # errors of MeCab, and of models that are downloaded at first use
    except (RuntimeError, ImportError, OSError) as error:
        language, mecab, _ = tokenize.partition("-mecab")
        how = f"install it with pip install 'sacrebleu[{language}]'" if mecab else str(error)
        raise UserError(f"sacreBLEU's tokenizer {tokenize} cannot be used: {how}") from error


def bleu(
    translations: Sequence[str],
    references: Sequence[str],
    *,
    lowercase: bool = False,
    tokenize: str = DEFAULT_TOKENIZER,
) -> Score:
    """Return the BLEU of raw text; :func:`tokenizer_for` returns a language's tokenizer."""
    return score_by(bleu_metric(tokenize, lowercase=lowercase), translations, references)


def chrf(
    translations: Sequence[str], references: Sequence[str], *, lowercase: bool = False
) -> Score:
    """Return the chrF of raw text."""
    return score_by(CHRF(lowercase=lowercase), translations, references)


def score_by(metric: BLEU | CHRF, translations: Sequence[str], references: Sequence[str]) -> Score:
    """Return a metric's score, rounded to two digits."""
    found = metric.corpus_score(translations, [references]).score
    return Score(round(found, 2), metric.get_signature().format(short=False))


def add_references(parser: argparse.ArgumentParser) -> None:
    """Add ``REF`` and ``--tokenize``, which :func:`read` takes."""
    about = "raw references, one per line"
    parser.add_argument("references", type=Path, metavar="REF", help=about)
    about = "sacreBLEU's tokenizer for BLEU (default: zh, ja-mecab or ko-mecab where the name of "
    about += f"REF ends in that language, else {DEFAULT_TOKENIZER})"
    names = sorted(BLEU.TOKENIZERS)
    parser.add_argument("--tokenize", choices=names, metavar="NAME", help=about)


def read(
    outputs: Iterable[Path], references: Path, tokenize: str | None
) -> tuple[list[list[str]], list[str], str]:
    """Read the translations of systems and their references, and choose the tokenizer.

    Args:
        outputs: a file for each system.
        references: the file of the references; the ending of its name, such as ``test.zh`` or
            ``test.zh.gz``, names the language. A warning says so if the tokenizer splits at spaces
            that the text does not have.
        tokenize: the tokenizer that the user named, which takes precedence.

    Raises:
        UserError: a file is missing or not text, or the files do not belong together.
    """
    lines, systems = read_text(references), []
    if not any(map(str.strip, lines)):
        raise UserError(f"{references} has no text: name the references")
    for output in outputs:
        systems.append(read_translations(output))
        check_lengths(systems[-1], output, lines, references)
    chosen = tokenize or tokenizer_for(Path(references.name.removesuffix(".gz")).suffix[1:])
    text = "".join(lines)
    if chosen == DEFAULT_TOKENIZER and 2 * len(_UNSPACED.findall(text)) > len(text):
        sys.stderr.write(
            f"warning: {one_line(str(references))} is in a script that puts no spaces between "
            f"words, at which {chosen} splits: name another with --tokenize, such as zh\n"
        )
    return systems, lines, chosen


def read_translations(output: Path) -> list[str]:
    """Read translations from a file: one per line, or the ``D-`` lines of ``fairseq-generate``.

    Raises:
        UserError: the file is missing or empty, or a translation is missing, truncated or repeated.
    """
    lines = read_text(output)
    return detokenized(output, lines) if any(map(_OF_FAIRSEQ.match, lines)) else lines


def read_text(path: Path) -> list[str]:
    """Read the lines of a text, as :func:`hyptrans.support.lines.read_lines` yields them."""
    return list(read_lines(path))


def detokenized(output: Path, lines: Sequence[str] | None = None) -> list[str]:
    """Read the translations in a file by ``fairseq-generate``: its ``D-`` lines, by number.

    ``lines``: its lines, if they were read already.

    Raises:
        UserError: there are none, or one is missing, truncated or repeated.
    """
    found: dict[int, str] = {}
    for place, line in enumerate(read_text(output) if lines is None else lines, 1):
        if not line.startswith("D-"):
            continue
        parts = _TRANSLATION.fullmatch(line)
        if parts is None:
            raise UserError(
                f"{output}, line {place} is not a whole D- line of fairseq-generate "
                f"({line[:40]!r}); translate again if the file was cut"
            )
        number = int(parts["number"])
        if number in found:
            raise UserError(f"{output} has two translations of sentence {number}")
        found[number] = parts["text"]
    missing = set(range(len(found))) - found.keys()
    if missing or not found:
        first = min(missing, default=0)
        raise UserError(f"{output} has no translation (D- line) of sentence {first}")
    return [found[number] for number in range(len(found))]


def check_lengths(
    translations: Sequence[str], output: Path, lines: Sequence[str], references: Path
) -> None:
    """Raise UserError if there are not as many translations as references."""
    if len(lines) != len(translations):
        raise UserError(
            f"{output} has {len(translations)} translations for {len(lines)} lines of {references}"
        )
