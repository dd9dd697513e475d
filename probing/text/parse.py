"""Plain text to CoNLL-U with a stanza pipeline: words, tags and dependency trees."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from hyptrans.support.errors import UserError
from hyptrans.support.extras import require
from hyptrans.support.files import whole_file
from probing.settings import BATCH_LINES
from probing.states.encoder import moved

PROCESSORS = ("tokenize", "mwt", "pos", "lemma", "depparse")
NEEDED = ("pos", "depparse")
# where a language has no lemmas, stanza takes the words themselves
IDENTITY = {"lemma": "identity"}


@dataclass
class Summary:
    """What was read and written.

    Attributes:
        lines: of the text.
        sentences: written.
        words: written.
        empty: numbers of the lines without text, which give no sentence.
        changed: numbers of the lines whose characters did not all come back.
    """

    lines: int = 0
    sentences: int = 0
    words: int = 0
    empty: list[int] = field(default_factory=list)
    changed: list[int] = field(default_factory=list)


def load_pipeline(
    language: str,
    folder: Path | None = None,
    *,
    device: str | None = None,
    pretokenized: bool = False,
    one_sentence_per_line: bool = False,
) -> Any:
    """A stanza pipeline of models that are on this machine; nothing is downloaded.

    Args:
        language: code, as stanza names it.
        folder: where ``resources.json`` and the models ``LANG/PROCESSOR/PACKAGE.pt`` are; stanza's
            own by default.
        device: where to run, as torch names it; None is a GPU where there is one.
        pretokenized: words are separated by spaces, and a line is a sentence.
        one_sentence_per_line: a line is a sentence.

    Raises:
        UserError: there are no such models, or no such device; says what to do.
    """
    stanza = require("stanza", "probing")
    if device is not None:
        # anything with parameters will do
        moved(torch.nn.Linear(1, 1), device)
    place = folder or Path(stanza.resources.common.DEFAULT_MODEL_DIR)
    processors = _processors(place, folder, language, pretokenized)
    try:
        return stanza.Pipeline(
            language,
            dir=str(place),
            package=None,
            processors=processors,
            download_method=None,
            device=device,
            tokenize_pretokenized=pretokenized,
            tokenize_no_ssplit=one_sentence_per_line,
            logging_level="ERROR",
        )
    except (OSError, ValueError, KeyError) as error:
        reason = " ".join(str(error).split())
        raise _no_models(place, folder, language, reason) from error
    except Exception as error:
        # a model file that torch or stanza cannot read raises whatever it runs into
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise UserError(
            f"a model of stanza in {place / language} cannot be loaded ({reason}); fetch it again "
            f"with: {fetch_command(language, folder)}"
        ) from error


def fetch_command(language: str, folder: Path | None) -> str:
    """The command that downloads the models of a language."""
    where = "" if folder is None else f", model_dir={str(folder)!r}"
    return f'python -c "import stanza; stanza.download({language!r}{where})"'


def _no_models(place: Path, folder: Path | None, language: str, reason: str) -> UserError:
    return UserError(
        f"the stanza models for {language} are not in {place} ({reason}); fetch them with: "
        f"{fetch_command(language, folder)}"
    )


def _processors(
    place: Path, folder: Path | None, language: str, pretokenized: bool
) -> dict[str, str]:
    """Those of ours that the language has in its default package, by name, and the package."""
    try:
        resources = json.loads((place / "resources.json").read_text(encoding="utf-8"))
        entry = resources[language]
        package = resources[entry.get("alias", language)]["packages"]["default"]
    except OSError as error:
        raise _no_models(place, folder, language, "no resources.json") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        reason = f"resources.json does not name a default package for {language}"
        raise _no_models(place, folder, language, reason) from error
    found = [name for name in PROCESSORS if name in package]
    if pretokenized:
        found = ["tokenize", *(name for name in found if name not in ("tokenize", "mwt"))]
    missing = [name for name in ("tokenize", *NEEDED) if name not in found]
    if missing:
        reason = f"its default package has no {missing[0]}"
        raise _no_models(place, folder, language, reason)
    # the parser insists on lemmas
    return {**dict.fromkeys(found, "default"), **({} if "lemma" in found else IDENTITY)}


def annotate(
    pipeline: Any,
    lines: Iterable[str],
    out: Path,
    *,
    one_sentence_per_line: bool = False,
    batch_lines: int = BATCH_LINES,
) -> Summary:
    """Parse lines and write CoNLL-U, which appears when it is whole.

    No sentence goes over the end of a line. A sentence is called after its line, ``7``, or ``7-1``,
    ``7-2`` … where the line has several.

    Args:
        pipeline: of :func:`load_pipeline`.
        lines: text.
        out: file to write.
        one_sentence_per_line: what the pipeline was loaded with; checked.
        batch_lines: lines that are parsed, and held in memory, together.

    Raises:
        UserError: no line has text, or a line did not stay one sentence.
    """
    summary = Summary()
    with whole_file(out) as file:
        numbered = enumerate(lines, 1)
        while batch := list(islice(numbered, batch_lines)):
            summary.lines += len(batch)
            for number, line, document in _parse(pipeline, batch, summary):
                _check(number, line, document, summary, one_sentence_per_line)
                file.write(_conllu(number, document).encode())
        if not summary.sentences:
            raise UserError("the text has no sentence: all its lines are empty")
    return summary


def _parse(
    pipeline: Any, batch: list[tuple[int, str]], summary: Summary
) -> Iterator[tuple[int, str, Any]]:
    full = [(number, line) for number, line in batch if line.strip()]
    summary.empty += [number for number, line in batch if not line.strip()]
    if not full:
        return
    stanza = require("stanza", "probing")
    documents = [stanza.Document([], text=line) for _, line in full]
    for (number, line), document in zip(full, pipeline.bulk_process(documents), strict=True):
        yield number, line, document


def _check(
    number: int, line: str, document: Any, summary: Summary, one_sentence_per_line: bool
) -> None:
    if one_sentence_per_line and len(document.sentences) != 1:
        raise UserError(f"line {number} became {len(document.sentences)} sentences: {line[:60]!r}")
    tokens = [token.text for sentence in document.sentences for token in sentence.tokens]
    if "".join("".join(tokens).split()) != "".join(line.split()):
        summary.changed.append(number)
    summary.sentences += len(document.sentences)
    summary.words += document.num_words


def _conllu(number: int, document: Any) -> str:
    """The sentences of a line, an empty line after each."""
    blocks = []
    for i, sentence in enumerate(document.sentences, 1):
        sentence.sent_id = f"{number}" if len(document.sentences) == 1 else f"{number}-{i}"
        blocks.append(f"{sentence:C}\n\n")
    return "".join(blocks)
