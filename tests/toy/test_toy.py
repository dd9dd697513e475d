import os
from collections import Counter, defaultdict

import pytest

from hyptrans.commands.cli import main
from hyptrans.toy import lexicon
from hyptrans.toy import treebank as toy
from hyptrans.toy.grammar import Node, Sampler
from hyptrans.toy.languages import ending, english, tovari
from hyptrans.toy.treebank import text
from tests.data.conftest import tree
from tests.programs import HYPTRANS, run

SMALL = ["--train", "300", "--valid", "40", "--test", "50"]
UPOS = {
    *("ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "NOUN", "NUM", "PART", "PRON", "PROPN", "PUNCT"),
    *("SCONJ", "VERB"),
}
DEPRELS = {
    *("root", "nsubj", "obj", "obl", "nmod", "amod", "nummod", "det", "case", "advmod", "aux"),
    *("mark", "acl", "acl:relcl", "advcl", "ccomp", "cc", "conj", "punct"),
}


def write(out, *options):
    """The exit status of the command."""
    return main(["prepare", "toy", "--out", str(out), *options])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("toy")
    assert write(out, "--train", "3000") == 0
    return out


def read_conllu(path):
    """The sentences: comments as a dict, words as lists of ten columns."""
    for block in path.read_text(encoding="utf-8").split("\n\n")[:-1]:
        lines = block.split("\n")
        comments = dict(line[2:].split(" = ", 1) for line in lines if line.startswith("#"))
        yield comments, [line.split("\t") for line in lines if not line.startswith("#")]


def depths(words):
    """Depth of each word, or None where its chain of heads does not end at the root."""
    found = []
    for word in words:
        head, steps = int(word[6]), 0
        while head and steps <= len(words):
            head, steps = int(words[head - 1][6]), steps + 1
        found.append(None if head else steps)
    return found


@pytest.mark.parametrize("language", toy.LANGUAGES)
@pytest.mark.parametrize(("split", "size"), [("train", 3000), ("valid", 400), ("test", 500)])
def test_trees_are_valid_conllu(folder, split, size, language):
    lines = (folder / f"{split}.{language}").read_text().splitlines()
    sentences = list(read_conllu(folder / f"{split}.{language}.conllu"))
    assert len(sentences) == len(lines) == size
    for (comments, words), line in zip(sentences, lines, strict=True):
        assert comments["text"] == line
        spaced = "".join(w[1] + ("" if "SpaceAfter=No" in w[9] else " ") for w in words)
        assert spaced.removesuffix(" ") == line
        assert all(len(word) == 10 for word in words)
        assert [int(word[0]) for word in words] == list(range(1, len(words) + 1))
        assert [word[7] for word in words if word[6] == "0"] == ["root"]
        assert None not in depths(words)
        assert {word[3] for word in words} <= UPOS
        assert {word[7] for word in words} <= DEPRELS
        assert len(words) <= toy.MOST_WORDS


@pytest.mark.parametrize("language", toy.LANGUAGES)
def test_sentences_are_unique_across_splits(folder, language):
    files = [folder / f"{split}.{language}" for split in toy.SIZES]
    lines = [line for file in files for line in file.read_text().splitlines()]
    assert len(set(lines)) == len(lines) == 3900


VERB_CLASSES = {
    verb.forms[0]: name
    for name in ("INTRANSITIVE", "TRANSITIVE", "SAYING")
    for verb in getattr(lexicon, name)
}


def skeleton(words):
    """Return what a reader without vocabulary sees: word classes and function words."""
    for word in words:
        if word.upos in ("NOUN", "PROPN", "ADJ", "NUM", "ADV"):
            yield word.upos, word.form != word.lemma
        elif word.upos == "VERB":
            yield VERB_CLASSES[word.lemma], word.form != word.lemma
        else:
            yield (word.form,)


def test_every_source_sentence_has_one_parse():
    sampler = Sampler(seed=5)
    trees = defaultdict(set)
    sentences = 0
    for _ in range(25000):
        words = list(english(sampler.sentence()).in_order())
        if len(words) > 13:  # longer ones hardly ever share a skeleton
            continue
        sentences += 1
        index = {id(word): i for i, word in enumerate(words)}
        heads = {index[id(child)]: index[id(w)] for w in words for child in w.before + w.after}
        tree = tuple((heads.get(i), word.deprel) for i, word in enumerate(words))
        trees[tuple(skeleton(words))].add(tree)
    assert len(trees) < 0.9 * sentences  # many do share one, so that the next line can fail
    assert [found for found in trees.values() if len(found) > 1] == []


def part(form, role, *parts, **more):
    """A part of a meaning by the first form of its noun or verb."""
    groups = (lexicon.PERSONS, lexicon.THINGS, lexicon.PLACES, lexicon.NAMES)
    groups += (lexicon.INTRANSITIVE, lexicon.TRANSITIVE, lexicon.SAYING)
    (found,) = [lexeme for group in groups for lexeme in group if lexeme.forms[0] == form]
    node = Node(role, parts=list(parts), **more)
    node.lexeme = found
    return node


def of(group, form):
    return next(lexeme for lexeme in group if lexeme.forms[0] == form)


def test_both_languages_express_the_same_meaning():
    old = [of(lexicon.ADJECTIVES, "old")]
    near = of(lexicon.OF_NOUNS, "near")
    house = part("house", "nmod", link=near, determiner="the", modifiers=old)
    dog = part("dog", "obj", house, determiner="a", modifiers=old)
    kings = part("king", "nsubj", determiner="the", plural=True)
    clause = part("see", "root", kings, dog, tense="Past")
    assert text(english(clause)) == "the kings saw an old dog near the old house."
    assert text(tovari(clause)) == "vekota ikile talona likir yte ikile kelum nehevit."


def test_clauses_follow_in_english_and_precede_in_tovari():
    queen = part("queen", "nsubj", determiner="the")
    relative = part("help", "acl:relcl", queen, tense="Pres", gap="obj")
    man = part("man", "nsubj", relative, determiner="the")
    said = part("sleep", "ccomp", man, tense="Past", negative=True, link=lexicon.THAT)
    clause = part("know", "root", part("anna", "nsubj"), said, tense="Pres")
    assert text(english(clause)) == "anna knows that the man who the queen helps did not sleep."
    assert text(tovari(clause)) == "anne rimelene auttolma ukko nukkomavi ette tietepe."


def test_a_subordinate_clause_comes_first_and_a_coordinated_one_last():
    anna, john = part("anna", "nsubj"), part("john", "nsubj")
    if_ = of(lexicon.SUBORDINATORS, "if")
    clause = part("sing", "root", anna, tense="Pres")
    clause.parts.append(part("sleep", "advcl", john, tense="Past", link=if_))
    assert text(english(clause)) == "if john slept, anna sings."
    assert text(tovari(clause)) == "jusso nukkovi joso, anne laulopa."
    clause.parts[1] = part("sleep", "conj", john, tense="Past", link=lexicon.AND)
    assert text(english(clause)) == "anna sings and john slept."
    assert text(tovari(clause)) == "anne laulopa jo jusso nukkovi."


def test_endings_follow_vowel_harmony():
    found = [ending(stem, "ssA") for stem in ("talo", "pihe", "ruunu", "kala")]
    assert found == ["talossa", "pihesse", "ruunussa", "kalassa"]


def test_stems_end_in_a_vowel_and_mean_one_word():
    groups = [found for name, found in vars(lexicon).items() if name.isupper()]
    words = [lexeme for group in groups if isinstance(group, tuple) for lexeme in group]
    stems = [w.stem for w in words if isinstance(w, lexicon.Lexeme) and w.kind != "ADP"]
    assert len(stems) > 150
    assert [stem for stem, count in Counter(stems).items() if count > 1] == []
    assert [stem for stem in stems if stem[-1] not in "aeiouy"] == []


def test_equal_options_give_identical_bytes_in_any_process(tmp_path):
    hashed = {**os.environ, "PYTHONHASHSEED": "1"}
    run(*HYPTRANS, "prepare", "toy", "--out", tmp_path / "1", *SMALL, env=hashed)
    assert write(tmp_path / "2", *SMALL) == write(tmp_path / "3", *SMALL, "--seed", "2") == 0
    one, two, other = (tree(tmp_path / name) for name in "123")
    assert one == two
    assert one["test.en"] != other["test.en"]


def test_valid_and_test_sets_do_not_depend_on_the_training_size(tmp_path, folder):
    assert write(tmp_path, "--train", "30") == 0
    small, large = tree(tmp_path), tree(folder)
    assert {name for name in small if small[name] != large[name]} == {
        name for name in small if "train" in name
    }


def test_files_are_replaced_only_with_overwrite(tmp_path, capsys):
    assert write(tmp_path, *SMALL) == 0
    before = tree(tmp_path)
    (tmp_path / "test.en").write_text("mine")
    (tmp_path / "notes").write_text("mine")
    for name in ("valid.en", "test.en"):
        assert write(tmp_path, *SMALL) == 2
        message = f"error: {tmp_path / name} already exists: choose another --out, or --overwrite"
        assert capsys.readouterr().err == f"{message}\n"
        for path in tmp_path.glob("valid.*"):
            path.unlink()
    assert tree(tmp_path)["test.en"] == b"mine"
    assert write(tmp_path, *SMALL, "--overwrite") == 0
    assert tree(tmp_path) == {**before, "notes": b"mine"}
