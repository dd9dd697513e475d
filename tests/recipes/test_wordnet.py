"""The WordNet recipe: its questions, its splits, and what it refuses."""

import collections

import pytest

from hyptrans.support.errors import UserError
from recipes.wordnet import __main__ as wordnet
from tests.recipes.test_exact import all_done

# a root, two kinds, eight inner nodes below each, and five leaves below each of those
KINDS = [f"1{kind}{inner}{leaf}" for kind in "12" for inner in "12345678" for leaf in "012345"]

LONELY = [f"2{one}" for one in range(9)]
"""Kinds of one leaf, which no other leaf's answer names."""


def noun(key, names, gloss, pointers):
    words = " ".join(f"{name} 0" for name in names)
    found = " ".join(f"{symbol} {parent:>08} n 0000" for symbol, parent in pointers)
    counts = f"{len(names):02x} {words} {len(pointers):03d} {found}"
    return f"{key:>08} 05 n {counts} | {gloss}  \n"


def write_nouns(folder):
    lines = [
        "  1 This is no licence.\n",
        noun("1", ["entity"], "what is", [("~", "2")]),
        noun("2", ["living_thing"], "what lives", [("@", "1"), ("~", "11")]),
        *(noun(f"1{kind}", [f"Kind_{kind}"], "a kind", [("@", "2")]) for kind in "12"),
    ]
    for key in KINDS:
        parent = key[:-1] if key[-1] != "0" else key[:2]
        name = f"inner{key[1:3]}" if key[-1] == "0" else f"leaf{key}"
        own = key[:-1] if key[-1] == "0" else key
        # the second hypernym must not count
        pointers = [("@", parent), ("@", "1"), ("+", "12")]
        lines.append(noun(own, [name, "Great_One"], f'word{key[:3]} of it; "a use"', pointers))
    for key in LONELY:
        lines.append(noun(key, [f"Lonely_{key}"], "a kind", [("@", "2")]))
        lines.append(noun(f"{key}1", ["leaf"], "its only leaf", [("@", key)]))
    lines.append(noun("99", ["Ada"], "one person", [("@i", "111")]))
    (folder / "data.noun").write_text("".join(lines))


@pytest.fixture
def nouns(tmp_path, monkeypatch):
    monkeypatch.setattr(wordnet, "DEPTH", 2)
    monkeypatch.setattr(wordnet, "SIZES", {"valid": 8, "test": 10, "subtrees": 12})
    write_nouns(tmp_path)
    return wordnet.read_tree(tmp_path)


def test_nouns_have_the_words_of_names_and_definition_and_one_parent(nouns):
    leaf = nouns["00001111"]
    assert leaf.words == ["leaf1111", "great", "one", "word111", "of", "it"]
    assert (leaf.node, leaf.parent) == ("leaf1111#00001111", "00000111")
    assert (nouns["00000001"].parent, nouns["00000099"].parent) == (None, None)


def test_answers_are_paths_and_subtrees_are_held_out_whole(nouns):
    sets = wordnet.make_sets(nouns)
    answered = {answer for _, answer, _ in sets["train"]}
    others = [example for name in sets if name != "train" for example in sets[name]]
    assert {answer for _, answer, _ in others} <= answered
    dropped = len(LONELY) - sum("Lonely" in answer for answer in answered)
    # the last subtree is taken whole
    assert len(sets["train"]) == 80 + len(LONELY) - 18 - 15
    assert len(sets["valid"]) + len(sets["test"]) == 18 - dropped
    assert (dropped > 0, len(sets["subtrees"])) == (True, 15)
    questions = {name: [question for question, *_ in found] for name, found in sets.items()}
    # a leaf's name occurs once, and the word of a held-out subtree never, in training
    assert {*questions["subtrees"]} == {"great one of it"}
    assert 10 < len({x for x in questions["train"] if "word" in x}) <= 16 - 3
    known = collections.Counter(word for x in questions["train"] for word in x.split())
    assert min(known.values()) == 2
    for question, answer, kind in [*sets["train"], *sets["valid"], *sets["test"]]:
        if "word" not in question:
            continue
        *first, word, _, _ = question.split()
        assert (first, word[:-2]) == (["great", "one"], "word1")
        assert answer == f"living_thing#00000002 Kind_{word[-2]}#0000001{word[-2]}"
        assert kind == "level_1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("00000001 05 v 01 run 0 000 | to run\n", r"line 1 is not a noun of WordNet's database"),
        (noun("1", ["entity"], "what is", []), "data.noun has no living_thing"),
        (noun("1", ["entity"], "what is", [("~i", "2")]), "is cut off: it lacks noun 00000002,"),
    ],
)
def test_another_file_is_refused(tmp_path, text, message):
    (tmp_path / "data.noun").write_text(text)
    with pytest.raises(UserError, match=message):
        wordnet.make_sets(wordnet.read_tree(tmp_path))


def test_table_shows_both_test_sets():
    lines = all_done(wordnet.GRID.trainings, lambda t: 50 - abs(t.rate - 1e-2) + t.seed)
    for line in lines:
        line["exact"]["subtrees"] = {"all": 3.0}
    assert "| d32 | sphere | 0.01 | 5 | 53.0 ± 1.6 | 3.0 ± 0.0 |" in wordnet.table(lines)
    assert wordnet.table([]) == "Not measured yet."
