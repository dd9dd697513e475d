"""Parse plain text into dependency trees with stanza."""

import argparse
import json
from itertools import islice
from pathlib import Path
from typing import Any

from hyptrans.support.errors import UserError, one_line
from hyptrans.support.extras import require
from hyptrans.support.files import whole_file
from hyptrans.support.lines import read_lines
from hyptrans.support.progress import bar

_PROCESSORS = ("tokenize", "mwt", "pos", "lemma", "depparse")
BATCH_LINES = 256
"""Lines that are parsed together."""


def main(args: argparse.Namespace) -> None:
    """Run ``hyptrans probe annotate``; sentences are named by their line, ``7`` or ``7-2``."""
    whole_lines = args.one_sentence_per_line or args.pretokenized
    # read once, to report an unusable file before loading the models
    total = sum(1 for _ in read_lines(args.text))
    pipeline, document_of = _pipeline(args, whole_lines), require("stanza", "probing").Document
    sentences = words = 0
    numbered = enumerate(bar(read_lines(args.text), "annotate", total), 1)
    with whole_file(args.out) as file:
        while batch := list(islice(numbered, BATCH_LINES)):
            # no sentence spans two lines
            full = {number: line for number, line in batch if line.strip()}
            documents = [document_of([], text=line) for line in full.values()]
            parsed = pipeline.bulk_process(documents) if documents else []
            for number, document in zip(full, parsed, strict=True):
                found = document.sentences
                if whole_lines and len(found) != 1:
                    raise UserError(f"line {number} of {args.text} became {len(found)} sentences")
                for i, sentence in enumerate(found, 1):
                    sentence.sent_id = f"{number}" if len(found) == 1 else f"{number}-{i}"
                    file.write(f"{sentence:C}\n\n".encode())
                sentences, words = sentences + len(found), words + document.num_words
        if not sentences:
            raise UserError(f"{args.text} has no sentence: all its lines are empty")
    print(f"{args.out}: {sentences} sentences, {words} words of {total} lines")


def _pipeline(args: argparse.Namespace, whole_lines: bool) -> Any:
    """Load stanza with local models; download nothing."""
    stanza = require("stanza", "probing")
    place = args.stanza_dir or Path(stanza.resources.common.DEFAULT_MODEL_DIR)
    try:
        return stanza.Pipeline(
            args.lang,
            dir=str(place),
            package=None,
            processors=_processors(place, args.lang, pretokenized=args.pretokenized),
            download_method=None,
            device=args.device,
            tokenize_pretokenized=args.pretokenized,
            tokenize_no_ssplit=whole_lines,
            logging_level="ERROR",
        )
    except Exception as error:
        # a missing or damaged model file can raise any error in stanza or torch
        where = f", model_dir={str(place)!r}" if args.stanza_dir else ""
        raise UserError(
            f"stanza's models for {args.lang} in {place} cannot be loaded "
            f"({one_line(str(error), 200)}); fetch them with: python -c "
            f'"import stanza; stanza.download({args.lang!r}{where})"'
        ) from error


def _processors(place: Path, language: str, *, pretokenized: bool) -> dict[str, str]:
    """Return the processors to run that the language's default package has, by name."""
    resources = json.loads((place / "resources.json").read_text(encoding="utf-8"))
    entry = resources[resources[language].get("alias", language)]["packages"]["default"]
    wanted = [name for name in _PROCESSORS if not (pretokenized and name == "mwt")]
    found = {name: "default" for name in wanted if name in entry or name == "tokenize"}
    # the parser requires lemmas; for a language without them, stanza uses the words themselves
    return {"lemma": "identity"} | found
