"""Characters of subwords, against counting characters that are no spaces."""

import html
import random
import re

import pytest
import sentencepiece

from hyptrans.inference.load import read
from probing.text.pieces import align, place_pieces, surface
from probing.text.trees import read_conllu
from tests.probing.helpers.model import make_checkpoint, prepared_folder, real_trees, sentences
from tests.probing.helpers.trees import tokenized

MARK = "\u2581"
# spaces of all kinds, zero-width and control characters, quotes, entities, emoji, other scripts
STRANGE = "a b\xa0c\u2009d\u3000e \u200bf\ufeff g\x07h \u201cq\u201d \u2019s &amp; <b> [x] | "
STRANGE += "\u4f60\u597d \U0001f600 e\u0301 \ufb01n \u0130stanbul @-@ a-b 5\u20ac "
STRANGE += "\u0928\u092e\u0938\u094d\u0924\u0947"


def cutter(folder, **models):
    """A prepared folder's way from text to subwords and their characters."""
    make_checkpoint(folder / "a.pt", folder, "han")
    contents = read(folder / "a.pt", data=folder, subword_models=models)
    words, rules = contents.dictionaries[0], contents.text
    cut = rules.encoder(0, frozenset(words.symbols[words.nspecial :]))

    def pieces_of(text):
        pieces = cut(text)
        return pieces, place_pieces(text, pieces, rules.kind, escaped=rules.steps[0].tokenize)

    return pieces_of


@pytest.fixture(scope="module", params=["raw", "moses"])
def way(request, tmp_path_factory):
    """Raw text to sentencepiece, or lower-cased tokens of Moses to byte pairs."""
    folder, lines, how = tmp_path_factory.mktemp("data") / "data", None, {}
    if request.param == "moses":
        lines = [re.sub(r"([.%])", r" \1", line.lower()) for line in sentences(300)]
        how = {"kind": "subword-nmt", "size": 40, "raw": False, "steps": ("tokenize", "lowercase")}
    return cutter(prepared_folder(folder, lines, **how))


def words_of(text):
    return [match.span() for match in re.finditer(r"\S+", text)]


def counted(text, pieces):
    """The n-th character of the subwords, an escape as one, is the n-th of the text but spaces."""
    kept = [i for i, character in enumerate(text) if not character.isspace()]
    joined, owners = "", []
    for number, piece in enumerate(pieces):
        ended = MARK in "".join(pieces) or not piece.endswith("@@")
        part = piece.removesuffix("@@").replace(MARK, "") + (" " if ended else "")
        joined, owners = joined + part, owners + [number] * len(part)
    found = [[] for _ in pieces]
    unit = r"\S" if MARK in "".join(pieces) else r"&[a-z#0-9]+;|(?<!\S)@-@(?!\S)|\S"
    units = list(re.finditer(unit, joined))
    assert len(units) == len(kept), (text, joined)
    for place, unit in zip(kept, units, strict=True):
        assert len(html.unescape(unit.group()).replace("@-@", "-")) == 1
        for owner in set(owners[unit.start() : unit.end()]):
            found[owner].append(place)
    return [(own[0], own[-1] + 1) if own else (0, 0) for own in found]


def test_character_spans_match_a_count(way):
    for text in (*sentences(25, seed=1), "&amp; [x]'s | R&D well-known"):
        text = text.replace("\u0130", "I")  # lower case has two characters for it
        pieces, spans = way(text)
        assert spans == counted(text, pieces)


def test_every_word_of_strange_text_has_subwords_over_all_its_characters(way):
    rng, parts = random.Random(0), STRANGE.split(" ")
    for _ in range(100):
        text = " ".join(rng.choices(parts, k=6)).strip()
        words = words_of(text)
        _, spans = way(text)
        indices = align(spans, words)
        assert not isinstance(indices, str), text
        for (start, end), own in zip(words, indices, strict=True):
            covered = {i for k in own for i in range(*spans[k])}
            # preparation takes out what no reader sees
            seen = {i for i in range(start, end) if text[i].isprintable()}
            assert seen <= covered, text


def test_alignment_follows_a_foreign_models_normalization(tmp_path):
    lines = [*sentences(200), "fine office \u201cquotes\u201d 1/2 123"] * 2
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_prefix=str(tmp_path / "nfkc"),
        minloglevel=2,
        hard_vocab_limit=False,
        vocab_size=60,
        normalization_rule_name="nmt_nfkc_cf",
    )
    own = cutter(prepared_folder(tmp_path / "data"), sentencepiece=tmp_path / "nfkc.model")
    text = "o\ufb03ce  \uff11\uff12 \u00bd THE\u200b \u2026 dog"
    pieces, spans = own(text)
    wanted = ["office", "12", "1\u20442", "the", "...", "dog"]
    for word, made in zip(words_of(text), wanted, strict=True):
        (found,) = align(spans, [word])
        assert "".join(pieces[i] for i in found).replace(MARK, "") == made


def test_a_subword_over_two_words_belongs_to_both():
    spans = place_pieces("of the", ["\u2581of\u2581th", "e"], "sentencepiece")
    assert spans == [(0, 5), (5, 6)]
    assert align(spans, [(0, 2), (3, 6)]) == [[0], [0, 1]]
    assert align(spans[:1], [(0, 2), (5, 6)]).startswith("word 2 has no piece")


def test_words_of_a_multiword_token_share_its_characters():
    spelled = tokenized(["do", "n't", "."], [("don't", 0, 1, False), (".", 2, 2, True)])
    assert surface(spelled) == ("don't.", [(0, 2), (2, 5), (5, 6)])
    merged = tokenized(["de", "le", "chat"], [("du", 0, 1, True), ("chat", 2, 2, True)])
    assert surface(merged) == ("du chat", [(0, 2), (0, 2), (3, 7)])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sentencepiece", "subword-nmt"])
def test_alignment_covers_ewt(tmp_path, kind):
    trees = read_conllu(real_trees() / "en_ewt-ud-dev.conllu.gz")
    lines = [surface(tree)[0].replace("\xa0", " ") for tree in trees]
    way = cutter(prepared_folder(tmp_path / "data", lines, kind=kind, size=1000))
    for tree in trees:
        text, words = surface(tree)
        pieces, spans = way(text)
        assert not isinstance(align(spans, words), str), tree.id
        if kind == "sentencepiece":
            assert spans == counted(text, pieces), tree.id
