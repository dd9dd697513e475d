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


def rows(*heads, words=None, tag="X"):
    """A sentence in CoNLL-U with such entries in its column of heads; its full stops are tagged."""
    lines = []
    for i, (word, head) in enumerate(zip(words or ["w"] * len(heads), heads, strict=True), 1):
        lines.append(
            f"{i}\t{word}\t_\t{'PUNCT' if word == '.' else tag}\t_\t_\t{head}\tdep\t_\t_\n"
        )
    return "".join([*lines, "\n"])


def conllu(lines):
    """Words between spaces, all under the first, in CoNLL-U."""
    made = [rows(0, *[1] * (len(words) - 1), words=words) for words in map(str.split, lines)]
    return "".join(f"# sent_id = s{number}\n{one}" for number, one in enumerate(made, 1))


def random_heads(n, seed):
    """Heads of a random tree, not projective in general."""
    rng = random.Random(seed)
    order = rng.sample(range(n), n)
    heads = [-1] * n
    for i in range(1, n):
        heads[order[i]] = order[rng.randrange(i)]
    return tuple(heads)
