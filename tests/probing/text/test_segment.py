import html
import json
import random
import re

import pytest
import sentencepiece

from hyptrans.data import subwords
from hyptrans.data.corpus import Scrubber
from hyptrans.data.moses import TextSteps
from hyptrans.support.errors import UserError
from probing.text.align import align, surface
from probing.text.segment import Options, from_options, from_prepared
from probing.text.trees import read_conllu
from tests.probing.helpers.model import (
    load_dictionary,
    prepared_folder,
    real_trees,
    sentences,
    write_lines,
)
from tests.probing.helpers.trees import tokenized

MARK = "\u2581"
# spaces of all kinds, zero-width and control characters, quotes, entities, emoji, other scripts
STRANGE = "a b\xa0c\u2009d\u3000e \u200bf\ufeff g\x07h \u201cq\u201d \u2019s &amp; <b> [x] | "
STRANGE += "\u4f60\u597d \U0001f600 e\u0301 \ufb01n \u0130stanbul \u2581x @-@ a-b 5\u20ac "
STRANGE += "\u0928\u092e\u0938\u094d\u0924\u0947"


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    return prepared_folder(tmp_path_factory.mktemp("raw") / "data")


@pytest.fixture(scope="module")
def moses(tmp_path_factory):
    steps = TextSteps("en", tokenize=True, lowercase=True).build()
    return prepared_folder(
        tmp_path_factory.mktemp("moses") / "data",
        [steps(line) for line in sentences(300)],
        kind="subword-nmt",
        size=40,
        steps=("tokenize", "lowercase"),
        raw=False,
    )


def words_of(text):
    return [match.span() for match in re.finditer(r"\S+", text)]


def test_words_by_spaces_are_the_pieces_where_there_are_no_subwords(raw):
    dictionary = load_dictionary(raw)
    place = raw / "manifest.json"
    manifest = json.loads(place.read_text())
    words = raw.parent / "words"
    words.mkdir()
    manifest |= {"command": ["data-prep/prepare_text.py", "--bpe", "none"], "outputs": {}}
    (words / "manifest.json").write_text(json.dumps(manifest))
    text = " the  cat's <pad> \u2581x"
    pieces = from_prepared(words, "en", dictionary)(text)
    assert [text[piece.start : piece.end] for piece in pieces] == text.split()
    assert [piece.text for piece in pieces] == ["the", "cat's", "<unk>", "\u2581x"]


def places(text, keep):
    """Of every character that is kept, in order, its place in the text."""
    return [i for i, character in enumerate(text) if keep(character)]


def by_counting(text, pieces, keep):
    """Oracle: the n-th character of the pieces is the n-th kept one of the text.

    Each piece is given as the numbers of its characters. Returns the spans of the pieces, or None
    where the pieces do not have as many characters as the text.
    """
    kept = places(text, keep)
    if {n for own in pieces for n in own} != set(range(len(kept))):
        return None
    return [(kept[own[0]], kept[own[-1]] + 1) if own else None for own in pieces]


def numbers_sentencepiece(pieces):
    done = 0
    for piece in pieces:
        length = len(piece.text.replace(MARK, ""))
        yield list(range(done, done + length))
        done += length


def numbers_bpe(pieces):
    """An escape is one character, and may be split over pieces."""
    done, word = 0, []
    for piece in pieces:
        word.append(piece.text.removesuffix("@@"))
        if piece.text.endswith("@@"):
            continue
        owners = [i for i, part in enumerate(word) for _ in part]
        numbers = [[] for _ in word]
        for unit in re.finditer(r"&[a-z#0-9]+;|.", "".join(word)):
            assert len(html.unescape(unit.group())) == 1
            for owner in sorted(set(owners[unit.start() : unit.end()])):
                numbers[owner].append(done)
            done += 1
        yield from numbers
        word = []


def visible(character):
    return bool(Scrubber(raw_text=True)(character).strip())


def check_against_counting(segmenter, text, numbers):
    pieces = segmenter(text)
    expected = by_counting(text, list(numbers(pieces)), visible)
    assert expected is not None, text
    for piece, span in zip(pieces, expected, strict=True):
        if span is None:
            # a lone space mark covers spaces, or nothing
            assert not text[piece.start : piece.end].strip(), (text, piece)
            continue
        start, end = piece.start, piece.end
        # the span may begin with the space that the mark stands for
        while start < end and not visible(text[start]):
            start += 1
        while end > start and not visible(text[end - 1]):
            end -= 1
        assert (start, end) == span, (text, piece)


@pytest.mark.parametrize("text", [*sentences(40, seed=1), STRANGE.replace(MARK, "")])
def test_sentencepiece_spans_are_those_of_counting(raw, text):
    segmenter = from_prepared(raw, "en", load_dictionary(raw))
    check_against_counting(segmenter, text, numbers_sentencepiece)


@pytest.mark.parametrize("text", [*sentences(40, seed=1), "&amp; <s> [x]'s |"])
def test_subword_nmt_spans_are_those_of_counting(moses, text):
    segmenter = from_prepared(moses, "en", load_dictionary(moses))
    # length-changing lower case: two characters of the pieces for one of the text
    check_against_counting(segmenter, text.replace("\u0130", "I"), numbers_bpe)


@pytest.mark.parametrize("text", sentences(40, seed=1))
def test_pieces_are_those_of_the_data_preparation(raw, moses, text, tmp_path):
    symbols = load_dictionary(raw).symbols[4:]
    known = write_lines(tmp_path / "pieces", symbols)
    encode = subwords.Encoder("sentencepiece", raw / "sentencepiece.model", known).build()
    segmenter = from_prepared(raw, "en", load_dictionary(raw))
    assert [piece.text for piece in segmenter(text)] == encode(text).split(" ")

    prepare = TextSteps("en", tokenize=True, lowercase=True).build()
    encode = subwords.Encoder("subword-nmt", moses / "bpe.codes").build()
    segmenter = from_prepared(moses, "en", load_dictionary(moses))
    assert [piece.text for piece in segmenter(text)] == encode(prepare(text)).split(" ")


@pytest.mark.parametrize("data", ["raw", "moses"])
def test_every_word_of_strange_text_has_pieces_over_all_its_characters(data, request):
    folder = request.getfixturevalue(data)
    segmenter = from_prepared(folder, "en", load_dictionary(folder))
    rng = random.Random(0)
    parts = STRANGE.split(" ")
    for _ in range(100):
        text = " ".join(rng.choices(parts, k=6)).strip()
        spans = words_of(text)
        pieces = segmenter(text)
        indices = align(pieces, spans)
        if isinstance(indices, str):
            # only what is nothing but removed characters
            number = int(re.search(r"word (\d+)", indices)[1]) - 1
            assert not any(map(visible, text[slice(*spans[number])])), text
            continue
        for (start, end), own in zip(spans, indices, strict=True):
            covered = {i for k in own for i in range(pieces[k].start, pieces[k].end)}
            assert {i for i in range(start, end) if visible(text[i])} <= covered, text


def test_unknown_characters_are_pieces_of_their_own_words(raw):
    dictionary = load_dictionary(raw)
    segmenter = from_prepared(raw, "en", dictionary)
    pieces = segmenter("the \u4f60\u597d dog")
    own = align(pieces, words_of("the \u4f60\u597d dog"))[1]
    assert "".join(pieces[i].text for i in own) == "\u4f60\u597d"
    assert {dictionary.index(pieces[i].text) for i in own} == {dictionary.unk()}


def test_piece_that_the_dictionary_lacks_is_spelled_out_as_in_the_data_preparation(raw):
    dictionary = load_dictionary(raw)
    segmenter = from_prepared(raw, "en", dictionary)
    longest = max((p.text for p in segmenter("the dog sees")), key=len)
    assert len(longest) > 3
    del dictionary.symbols[dictionary.index(longest)]
    spelled = from_prepared(raw, "en", dictionary)("the dog sees")
    run = [p.text for p in spelled]
    at = next(i for i in range(len(run)) if run[i : i + len(longest)] == list(longest))
    letters = [p for p in spelled[at : at + len(longest)] if p.text != MARK]
    assert ["the dog sees"[p.start : p.end] for p in letters] == [p.text for p in letters]


def train(path, lines, **options):
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_prefix=str(path.with_suffix("")),
        minloglevel=2,
        hard_vocab_limit=False,
        **options,
    )
    return path


def test_normalization_of_a_foreign_model_is_followed(raw, tmp_path):
    lines = [*sentences(200), "fine office \u201cquotes\u201d 1/2 123"] * 2
    model = train(
        tmp_path / "nfkc.model", lines, vocab_size=60, normalization_rule_name="nmt_nfkc_cf"
    )
    segmenter = from_options(Options(sentencepiece_model=model), load_dictionary(raw))
    text = "o\ufb03ce  \uff11\uff12 \u00bd THE\u200b \u2026 dog"
    pieces = segmenter(text)
    for (start, end), wanted in zip(
        words_of(text), ["office", "12", "1\u20442", "the", "...", "dog"], strict=True
    ):
        (own,) = align(pieces, [(start, end)])
        made = "".join(pieces[i].text for i in own).replace(MARK, "")
        assert made == wanted


def test_piece_over_two_words_belongs_to_both(raw, tmp_path):
    lines = ["of the", "of the dog", "in the end of the"] * 50
    model = train(tmp_path / "wide.model", lines, vocab_size=30, split_by_whitespace=False)
    segmenter = from_options(Options(sentencepiece_model=model), load_dictionary(raw))
    pieces = segmenter("of the")
    wide = [i for i, p in enumerate(pieces) if MARK in p.text[1:]]
    assert wide
    first, second = align(pieces, [(0, 2), (3, 6)])
    assert set(wide) & set(first) & set(second)


def test_multiword_token_is_split_by_characters(raw):
    words = tokenized(["do", "n't", "."], [("don't", 0, 1, False), (".", 2, 2, True)])
    text, spans = surface(words)
    pieces = from_prepared(raw, "en", load_dictionary(raw))(text)
    indices = align(pieces, spans)
    for own, (start, end) in zip(indices, spans, strict=True):
        assert all(max(pieces[i].start, start) < min(pieces[i].end, end) for i in own)
    assert sorted({i for own in indices for i in own}) == [
        i for i, p in enumerate(pieces) if p.text != MARK
    ]


def test_straight_apostrophes_and_punctuation_are_followed(moses):
    from probing.text.segment import Segmenter

    segmenter = Segmenter(
        TextSteps("en", straight_apostrophe=True, normalize=True, tokenize=True, aggressive=True),
        raw_text=False,
        kind="subword-nmt",
        model=moses / "bpe.codes",
        spell_out=lambda piece: False,
    )
    text = "\u201cIt\u2019s well-known\u201d , he said \u2026 \u00ab R&D \u00bb\u2014no"
    traced = segmenter.prepare(text)
    assert "&apos;s well @-@ known" in traced.text
    for token, made in (
        ("It", "It"),
        ("known", "known"),
        ("said", "said"),
        ("R", "R"),
        ("no", "no"),
    ):
        start = re.search(rf"(?<!\S){made}(?!\S)", traced.text).start()
        place = text.rindex(token) if token == "no" else text.index(token)
        assert traced.hull(start, start + len(made)) == (place, place + len(token)), token
    assert text[slice(*traced.hull(*re.search("&apos;s", traced.text).span()))] == "\u2019s"
    assert text[slice(*traced.hull(*re.search("@-@", traced.text).span()))] == "-"
    assert text[slice(*traced.hull(*re.search(r"\.\.\.", traced.text).span()))] == "\u2026"
    indices = align(segmenter(text), words_of(text))
    assert not isinstance(indices, str)


def test_steps_are_those_of_the_language_that_is_read(moses):
    # only its English was tokenized and lower-cased
    english, german = (
        from_prepared(moses, language, load_dictionary(moses)) for language in ("en", "de")
    )
    assert english.prepare("The dog, I see").text == "the dog , i see"
    assert german.prepare("The dog, I see").text == "The dog, I see"
    with pytest.raises(UserError, match="has text of en and de"):
        from_prepared(moses, "fr", load_dictionary(moses))


def test_flags_must_name_one_model(raw):
    dictionary = load_dictionary(raw)
    model = raw / "sentencepiece.model"
    for options in (Options(), Options(sentencepiece_model=model, bpe_codes=model)):
        with pytest.raises(UserError, match="--sentencepiece-model and --bpe-codes"):
            from_options(options, dictionary)


def test_wrong_files_are_named(raw, tmp_path):
    dictionary = load_dictionary(raw)
    with pytest.raises(UserError, match=r"has no manifest\.json"):
        from_prepared(tmp_path, "en", dictionary)
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(UserError, match="is not a manifest"):
        from_prepared(tmp_path, "en", dictionary)
    with pytest.raises(UserError, match=r"none\.model is not a file"):
        from_options(Options(sentencepiece_model=tmp_path / "none.model"), dictionary)
    with pytest.raises(UserError, match=r"manifest\.json is not a sentencepiece model"):
        from_options(Options(sentencepiece_model=tmp_path / "manifest.json"), dictionary)


PARTS = [
    pytest.param(("dev",), 2001, id="dev"),
    pytest.param(("dev", "test", "train"), 16622, id="all", marks=pytest.mark.slow),
]


def ewt_text(count):
    trees = read_conllu(real_trees() / "en_ewt-ud-train.conllu.gz")
    return [Scrubber(raw_text=True)(surface(tree)[0]) for tree in trees[:count]]


def check_ewt(segmenter, numbers, parts):
    """Every word has pieces that cover it, which are those that counting characters finds."""
    different = total = 0
    for part in parts:
        for tree in read_conllu(real_trees() / f"en_ewt-ud-{part}.conllu.gz"):
            text, spans = surface(tree)
            pieces = segmenter(text)
            indices = align(pieces, spans)
            assert not isinstance(indices, str), (tree.id, indices)
            for word, (start, end), own in zip(tree.words, spans, indices, strict=True):
                assert text[start:end] == word or len(tree.words) > len(tree.tokens)
                covered = {i for k in own for i in range(pieces[k].start, pieces[k].end)}
                assert set(range(start, end)) <= covered, (tree.id, word)
            counted = by_counting(text, list(numbers(pieces)), visible)
            total += 1
            if counted is None:
                different += 1
                continue
            expected = [
                [k for k, span in enumerate(counted) if span and max(span[0], a) < min(span[1], b)]
                for a, b in spans
            ]
            assert indices == expected, tree.id
    return different, total


@pytest.mark.slow
@pytest.mark.parametrize(("parts", "sentences_of_ewt"), PARTS)
def test_ewt_is_aligned_to_sentencepiece(tmp_path, parts, sentences_of_ewt):
    folder = prepared_folder(tmp_path / "data", ewt_text(3000), size=1000)
    segmenter = from_prepared(folder, "en", load_dictionary(folder))
    different, total = check_ewt(segmenter, numbers_sentencepiece, parts)
    assert (different, total) == (0, sentences_of_ewt)


@pytest.mark.slow
@pytest.mark.parametrize(("parts", "sentences_of_ewt"), PARTS)
def test_ewt_is_aligned_to_subword_nmt_after_moses(tmp_path, parts, sentences_of_ewt):
    prepare = TextSteps("en", tokenize=True, lowercase=True).build()
    folder = prepared_folder(
        tmp_path / "data",
        [prepare(line) for line in ewt_text(1500)],
        kind="subword-nmt",
        size=500,
        steps=("tokenize", "lowercase"),
        raw=False,
    )
    segmenter = from_prepared(folder, "en", load_dictionary(folder))
    different, total = check_ewt(segmenter, numbers_bpe, parts)
    assert (different, total) == (0, sentences_of_ewt)
