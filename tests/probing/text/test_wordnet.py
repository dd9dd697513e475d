"""Depths of nouns out of a WordNet that was written by hand, and of the real one."""

import pytest

from hyptrans.support.errors import UserError
from probing.settings import WORDNET
from probing.text.wordnet import noun_depths

# entity > thing > animal > dog, and entity > pet > dog; Paris is an instance of thing's town;
# an @ of another part of speech's kind, a ~, leads nowhere; ten words are 0a in hexadecimal
DATA = """\
  1 This software and database is being provided to you, the LICENSEE, by
  2 Princeton University under the following license.
00000100 03 n 01 entity 0 002 ~ 00000200 n 0000 ~ 00000500 n 0000 | that which is | perceived
00000200 03 n 0a thing 0 b 0 c 0 d 0 e 0 f 0 g 0 h 0 i 0 j 1 001 @ 00000100 n 0000 | a
00000300 05 n 01 animal 0 002 @ 00000200 n 0000 + 00000900 v 0101 | "@ 00000100" is no pointer
00000400 05 n 02 dog 0 Canis_canis 0 003 @ 00000300 n 0000 @ 00000500 n 0000 #m 00000100 n 0000 | b
00000500 05 n 01 pet 0 010 @ 00000100 n 0000 ~ 00000400 n 0000 ~ 00000400 n 0000 ~ 00000400 n 0000 \
~ 00000400 n 0000 ~ 00000400 n 0000 ~ 00000400 n 0000 ~ 00000400 n 0000 ~ 00000400 n 0000 \
~ 00000400 n 0000 | c
00000600 15 n 01 town 0 001 @ 00000200 n 0000 | d
00000700 15 n 02 Paris 0 paris 2 001 @i 00000600 n 0000 | e
00000800 15 n 01 island 0 000 | of no root
"""
INDEX = """\
  1 This software and database is being provided to you, the LICENSEE, by
animal n 1 2 @ + 1 1 00000300
canis_canis n 1 2 @ #m 1 1 00000400
dog n 2 2 @ #m 2 1 00000400 00000600
entity n 1 1 ~ 1 0 00000100
island n 1 0 1 1 00000800
paris n 1 1 @i 1 2 00000700
pet n 1 2 @ ~ 1 0 00000500
thing n 2 1 @ 2 2 00000200 00000300
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "data.noun").write_text(DATA)
    (tmp_path / "index.noun").write_text(INDEX)
    return tmp_path


def test_depth_is_the_shortest_path_from_the_first_sense_to_the_root(folder):
    # nobody has counted pet in a text, and town is in no index
    assert noun_depths(folder) == {
        "entity": 0,
        "thing": 1,
        "animal": 2,
        "dog": 2,
        "Canis_canis": 2,
        "Paris": 3,
        "paris": 3,
    }


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("data.noun", "002 @ 00000200 n 0000 +", "9 @ 00000200 n 0000 +", "data.noun, line 5: no"),
        ("data.noun", "n 0a thing", "n xx thing", "data.noun, line 4: no line of WordNet's"),
        ("index.noun", "1 2 00000700", "1", "index.noun, line 7: no line of WordNet's"),
        ("data.noun", "00000100 03 n 01 entity", "00000101 03 n 01 entity", "no synset 00000100"),
        ("index.noun", "entity n", "entities n", "has no noun 'entity', the root of WordNet"),
    ],
)
def test_what_is_no_wordnet_is_refused(folder, file, old, new, said):
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new))
    with pytest.raises(UserError, match=said):
        noun_depths(folder)


def test_of_the_real_one():
    if not (WORDNET / "index.noun").is_file():
        pytest.skip(f"{WORDNET} has no WordNet (Debian's package wordnet-base)")
    depths = noun_depths(WORDNET)
    # as other readers of WordNet 3.0 tell the least depth of dog.n.01, car.n.01 and Paris
    assert [depths[noun] for noun in ("entity", "dog", "car", "Paris")] == [0, 8, 10, 10]
    assert "he" not in depths
    assert len(depths) > 10_000
