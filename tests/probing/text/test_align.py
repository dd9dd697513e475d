import random

import pytest

from probing.text.align import Piece, Traced, align, compare, map_characters, surface
from tests.probing.helpers.trees import tokenized


def same(character):
    return character


def test_words_of_a_multiword_token_that_spell_it_have_their_own_characters():
    text, spans = surface(
        tokenized(
            ["do", "n't", "go", "."],
            [("don't", 0, 1, True), ("go", 2, 2, False), (".", 3, 3, True)],
        )
    )
    assert text == "don't go."
    assert [text[a:b] for a, b in spans] == ["do", "n't", "go", "."]


def test_words_of_a_multiword_token_that_do_not_spell_it_share_all_of_it():
    text, spans = surface(
        tokenized(["de", "le", "pain"], [("du", 0, 1, True), ("pain", 2, 2, True)])
    )
    assert text == "du pain"
    assert [text[a:b] for a, b in spans] == ["du", "du", "pain"]


def test_token_with_a_space_inside_keeps_it():
    text, spans = surface(tokenized(["20 000", "x"], [("20 000", 0, 0, True), ("x", 1, 1, True)]))
    assert [text[a:b] for a, b in spans] == ["20 000", "x"]


def test_piece_over_two_words_counts_for_both_and_a_lone_space_for_none():
    pieces = [Piece("\u2581", 0, 0), Piece("ab", 0, 2), Piece("\u2581", 2, 3), Piece("c", 3, 4)]
    assert align(pieces, [(0, 1), (1, 2), (3, 4)]) == [[1], [1], [3]]


def test_word_without_a_piece_is_named():
    assert align([Piece("a", 0, 1)], [(0, 1), (2, 3)]).startswith("word 2 has no piece")


@pytest.mark.parametrize("text", ["A\u0130b \u0130", "\u03a3\u0399\u03a3 \u03a3", "Stra\u1e9ee"])
def test_lower_casing_that_changes_lengths_is_followed(text):
    traced = map_characters(Traced.of(text), str.lower)
    assert traced.text == text.lower()
    # lower-casing one character gives as many as lower-casing it among others
    assert traced.spans == [(i, i + 1) for i, c in enumerate(text) for _ in c.lower()]


def test_step_that_moves_characters_is_not_followed_as_if_it_did_not():
    with pytest.raises(ValueError, match="character by character"):
        map_characters(Traced.of("a  b"), lambda s: " ".join(s.split()))


def test_removed_characters_leave_the_others_in_place():
    traced = map_characters(Traced.of("a\x00bc"), lambda s: s.replace("\x00", ""))
    assert (traced.text, traced.spans) == ("abc", [(0, 1), (2, 3), (3, 4)])


def test_two_steps_are_followed_to_the_first_text():
    first = map_characters(Traced.of("x\x00Y"), lambda s: s.replace("\x00", ""))
    second = compare(first, "x &amp; y", lambda c: {"Y": "&y"}.get(c, c), escaped=True)
    assert second.hull(2, 7) == second.hull(8, 9) == (2, 3)


def test_escapes_and_marks_of_moses_stand_for_one_character():
    before, after = 'R&D "a"-b', "R &amp; D &quot; a &quot; @-@ b"
    traced = compare(Traced.of(before), after, same, escaped=True)
    for unit, place in (("&amp;", 1), ("D", 2), ("a", 5), ("@-@", 7), ("b", 8)):
        start = after.rindex(unit) if unit != "a" else after.index(" a ") + 1
        assert traced.hull(start, start + len(unit)) == (place, place + 1), unit


def test_stretch_that_changed_its_length_comes_from_the_whole_of_what_it_was():
    traced = compare(Traced.of("one ... two"), "one \u2026 two", same)
    assert traced.hull(4, 5) == (4, 7)
    assert traced.hull(6, 9) == (8, 11)


def test_inserted_characters_come_from_nothing():
    traced = compare(Traced.of("ab"), "a x b", same)
    assert traced.hull(2, 3) == (0, 0)
    assert traced.hull(4, 5) == (1, 2)


def test_spaces_anywhere_change_nothing():
    # oracle: without spaces the n-th character stays the n-th
    rng = random.Random(0)
    for _ in range(200):
        letters = rng.choices("abc", k=rng.randint(1, 12))
        before, after = ("".join(c + " " * rng.randint(0, 2) for c in letters) for _ in range(2))
        traced = compare(Traced.of(before), after, same)
        places = [i for i, c in enumerate(before) if c != " "]
        made = [i for i, c in enumerate(after) if c != " "]
        assert [traced.spans[i] for i in made] == [(p, p + 1) for p in places]
