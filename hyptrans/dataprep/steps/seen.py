"""What the training text has of characters and subwords, and whether test text comes back."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hyptrans.dataprep.steps import subwords
from hyptrans.support.lines import read_lines, write_lines
from hyptrans.support.progress import by_name


def take_inventory(
    groups: Sequence[Sequence[str]],
    texts: Mapping[str, Path],
    encoded: Mapping[str, Path],
    outputs: Sequence[Path],
) -> dict[str, int]:
    """Write what was seen in training, and return the number of distinct characters.

    Args:
        groups: the languages that share a dictionary.
        texts: training text by language.
        encoded: the same in subwords.
        outputs: files to write, by name: ``characters.xx``, ``pieces.xx`` (subwords seen) and
            ``dict.xx`` (fairseq dictionary).
    """
    counts = {}
    for group in groups:
        files = [path for path in outputs if path.suffix[1:] in group]
        characters = {c for lang in group for line in read_lines(texts[lang]) for c in line}
        characters.discard(" ")
        counts[f"characters {'+'.join(group)}"] = len(characters)
        used: Counter[str] = Counter()
        if any(path.stem != "characters" for path in files):
            used = subwords.used_pieces(encoded[lang] for lang in group)
        for path in files:
            if path.stem == "characters":
                write_lines(sorted(characters), path)
            elif path.stem == "pieces":
                write_lines(sorted(used), path)
            else:
                # what a piece that begins a word is spelled out with
                subwords.write_dictionary(used, {*characters, subwords.WORD_START}, path)
    return counts


def compare(kind: str, text: Path, encoded: Path, characters: Path) -> dict[str, Any]:
    """Count the lines whose text comes back from their subwords, and the unseen characters."""
    seen = {" ", *read_lines(characters)}
    lines = restored = 0
    unseen: Counter[str] = Counter()
    for line, subword_line in zip(read_lines(text), read_lines(encoded), strict=True):
        expected = line if kind == "sentencepiece" else " ".join(line.split())
        lines += 1
        restored += subwords.decode(kind, subword_line) == expected
        unseen.update(f"U+{ord(c):04X}" for c in line if c not in seen)
    return {
        "lines": lines,
        "restored": restored,
        "characters never seen in training": by_name(unseen),
    }
