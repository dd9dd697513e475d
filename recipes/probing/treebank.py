"""Write what stanza's trainers read, from the files of a treebank: trees, text and labels.

Everything goes into one folder: treebank/ has the files, models/ the list that tells stanza which
models there are once they are trained. The test set is written as words, to be parsed, and as trees
of those words.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from hyptrans.support.errors import run_command
from hyptrans.support.extras import require
from hyptrans.support.files import write_json, write_whole
from hyptrans.support.lines import read_lines
from recipes.common import options

PACKAGE = "ewt"
PROCESSORS = ("tokenize", "mwt", "pos", "depparse")
PARAGRAPH = ("# newdoc", "# newpar")
TEXT = "# text = "


def main(argv: Sequence[str] | None = None) -> None:
    """Write all files."""
    parser = options.script_parser(__doc__)
    for name in ("train", "dev", "test"):
        parser.add_argument(f"--{name}", type=Path, required=True, help="CoNLL-U of the set")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to write")
    args = parser.parse_args(argv)
    folder = args.out / "treebank"
    for name in ("train", "dev"):
        write_for_training(_blocks(getattr(args, name)), folder, name)
    sentences = [_words(block) for block in _blocks(args.test)]
    lines = (" ".join(row[1] for row in rows) for rows in sentences)
    write_whole(folder / "test.words", "".join(f"{line}\n" for line in lines))
    trees = ("".join("\t".join(row) + "\n" for row in rows) for rows in sentences)
    write_whole(folder / "test.conllu", "".join(f"{tree}\n" for tree in trees))
    write_list_of_models(args.out / "models")


def _blocks(path: Path) -> Iterator[list[str]]:
    """Sentences as rows; stanza's trainers take no empty nodes."""
    rows: list[str] = []
    for line in read_lines(path):
        if line:
            if line.startswith("#") or "." not in line.split("\t", 1)[0]:
                rows.append(line)
        elif rows:
            yield rows
            rows = []
    if rows:
        yield rows


def _words(rows: Iterable[str]) -> list[list[str]]:
    """The columns of the words of a sentence, each word without spaces inside."""
    columns = [row.split("\t") for row in rows if not row.startswith("#")]
    return [[n, "_".join(form.split()), *rest] for n, form, *rest in columns if n.isdigit()]


def write_for_training(blocks: Iterable[list[str]], folder: Path, name: str) -> None:
    """Trees, the text that they were made from in paragraphs, and the tokenizer's labels of it."""
    trees, paragraphs = list[str](), list[list[str]]()
    for rows in blocks:
        trees.append("\n".join(rows) + "\n\n")
        text = next((row.removeprefix(TEXT) for row in rows if row.startswith(TEXT)), "")
        if not paragraphs or any(row.startswith(PARAGRAPH) for row in rows):
            paragraphs.append([])
        paragraphs[-1].append(text)
    write_whole(folder / f"{name}.conllu", "".join(trees))
    joined = "\n\n".join(" ".join(texts) for texts in paragraphs)
    write_whole(folder / f"{name}.txt", f"{joined}\n")
    stanza = require("stanza.utils.datasets.prepare_tokenizer_data", "probing")
    files = [str(folder / f"{name}.{kind}") for kind in ("txt", "conllu", "labels", "mwt.json")]
    stanza.main([*files[:2], "-o", files[2], "-m", files[3]])


def write_list_of_models(folder: Path) -> None:
    """What tells stanza which models there are."""
    english: dict[str, object] = {name: {PACKAGE: {}} for name in PROCESSORS}
    english["packages"] = {"default": dict.fromkeys(PROCESSORS, PACKAGE)}
    write_json(folder / "resources.json", {"en": {"lang_name": "English", **english}})
    print(json.dumps({"package": PACKAGE, "processors": PROCESSORS}))


if __name__ == "__main__":
    sys.exit(run_command(main))
