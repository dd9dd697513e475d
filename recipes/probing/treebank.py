"""What stanza's trainers read, from the files of a treebank: trees, text and labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from hyptrans.support.extras import require
from hyptrans.support.files import write_json, write_whole
from hyptrans.support.lines import read_lines

PACKAGE = "ewt"
PROCESSORS = ("tokenize", "mwt", "pos", "depparse")
PARAGRAPH = ("# newdoc", "# newpar")
TEXT = "# text = "


def write(trees: Mapping[str, Path], folder: Path) -> None:
    """Write all files of a treebank.

    The test set is written as words, to be parsed, and as trees of those words.

    Args:
        trees: CoNLL-U of train, dev and test.
        folder: where they go.
    """
    for name in ("train", "dev"):
        _write_for_training(_blocks(trees[name]), folder, name)
    sentences = [_words(block) for block in _blocks(trees["test"])]
    lines = (" ".join(row[1] for row in rows) for rows in sentences)
    write_whole(folder / "test.words", "".join(f"{line}\n" for line in lines))
    blocks = ("".join("\t".join(row) + "\n" for row in rows) for rows in sentences)
    write_whole(folder / "test.conllu", "".join(f"{block}\n" for block in blocks))


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


def _write_for_training(blocks: Iterable[list[str]], folder: Path, name: str) -> None:
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
    """Write what tells stanza which models a folder will have once they are trained."""
    english: dict[str, object] = {name: {PACKAGE: {}} for name in PROCESSORS}
    english["packages"] = {"default": dict.fromkeys(PROCESSORS, PACKAGE)}
    write_json(folder / "resources.json", {"en": {"lang_name": "English", **english}})
