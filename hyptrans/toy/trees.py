"""Dependency trees of the toy languages: words with left and right dependents, and CoNLL-U."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(eq=False)
class Word:
    """A word with its left and right dependents; the root holds the whole tree.

    ``origin`` names the part of the meaning that it expresses, by which both languages are aligned.
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
        """Yield all words from left to right; the tree is projective by construction."""
        for word in self.before:
            yield from word.in_order()
        yield self
        for word in self.after:
            yield from word.in_order()


def text(root: Word) -> str:
    """Return the sentence as it is written, without spaces before punctuation."""
    words = (word.form if word.upos == "PUNCT" else f" {word.form}" for word in root.in_order())
    return "".join(words)[1:]


def conllu(root: Word, sent_id: str, other: Word) -> str:
    """Return the sentence in CoNLL-U, with an empty line at its end.

    ``Align=3`` in the last column means that the word corresponds to word 3 of ``other``.
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
