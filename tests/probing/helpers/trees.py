"""Trees for the tests, without a file."""

import random

from probing.text.trees import Sentence, Token


def sentence_of(heads, upos=None, xpos=None, name="s"):
    """A sentence of words without meaning."""
    words = tuple(f"w{i}" for i in range(len(heads)))
    return Sentence(
        id=name,
        words=words,
        heads=tuple(heads),
        upos=tuple(upos or ["NOUN"] * len(heads)),
        xpos=tuple(xpos or ["NN"] * len(heads)),
        tokens=tuple(Token(word, i, i, True) for i, word in enumerate(words)),
    )


def tokenized(words, tokens):
    """A flat tree over words; tokens are (form, first, last, space after)."""
    heads = tuple([-1] + [0] * (len(words) - 1))
    tags = ("X",) * len(words)
    made = tuple(Token(*token) for token in tokens)
    return Sentence("s", tuple(words), heads, tags, tags, made)


def conllu(lines):
    """Words between spaces, all under the first, in CoNLL-U."""
    blocks = []
    for number, line in enumerate(lines, 1):
        rows = [
            f"{i}\t{word}\t_\tX\t_\t_\t{0 if i == 1 else 1}\tdep\t_\t_"
            for i, word in enumerate(line.split(), 1)
        ]
        blocks.append("\n".join([f"# sent_id = s{number}", *rows]) + "\n\n")
    return "".join(blocks)


def random_heads(n, seed):
    """Heads of a random tree, not projective in general."""
    rng = random.Random(seed)
    order = rng.sample(range(n), n)
    heads = [-1] * n
    for i in range(1, n):
        heads[order[i]] = order[rng.randrange(i)]
    return tuple(heads)
