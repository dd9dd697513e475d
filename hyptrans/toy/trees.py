"""Dependency trees of the toy languages, as words with left and right dependents, and CoNLL-U."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(eq=False)
class Word:
    """A word with its dependents on either side; a whole tree hangs on its root.

    ``origin`` names the part of the meaning it says, by which both languages are aligned.
    """

    form: str
    lemma: str
    upos: str
    deprel: str
    origin: tuple[int, str]
    feats: dict[str, str] = field(default_factory=dict)
    before: list[Word] = field(default_factory=list)
    after: list[Word] = field(default_factory=list)

    def in_order(self) -> Iterator[Word]:
        """All words of the tree from left to right: a projective tree by construction."""
        for word in self.before:
            yield from word.in_order()
        yield self
        for word in self.after:
            yield from word.in_order()


def text(root: Word) -> str:
    """The sentence as it is written: no space before punctuation."""
    words = (word.form if word.upos == "PUNCT" else f" {word.form}" for word in root.in_order())
    return "".join(words)[1:]


def conllu(root: Word, sent_id: str, other: Word) -> str:
    """The sentence in CoNLL-U, an empty line at its end.

    ``Align=3`` in the last column: the word says what word 3 of the ``other`` sentence says.
    """
    words = list(root.in_order())
    index = {id(word): i for i, word in enumerate(words, 1)}
    heads = {id(child): index[id(w)] for w in words for child in w.before + w.after}
    aligned = {word.origin: i for i, word in enumerate(other.in_order(), 1)}
    lines = [f"# sent_id = {sent_id}", f"# text = {text(root)}"]
    for i, word in enumerate(words, 1):
        feats = "|".join(f"{key}={value}" for key, value in sorted(word.feats.items())) or "_"
        misc = [f"Align={aligned[word.origin]}"] if word.origin in aligned else []
        if i < len(words) and words[i].upos == "PUNCT":
            misc.append("SpaceAfter=No")
        columns = [str(i), word.form, word.lemma, word.upos, "_", feats]
        columns += [str(heads.get(id(word), 0)), word.deprel, "_", "|".join(misc) or "_"]
        lines.append("\t".join(columns))
    return "\n".join(lines) + "\n\n"
