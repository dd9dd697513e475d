"""Cards whose facts are a stranger's."""

import ast
import re

import pytest

from hyptrans.geometry.space import Space
from hyptrans.inference.sharing import card, hub

LINES = "\n```\n\n# Heading\n"


def test_what_a_checkpoint_says_stays_in_its_line_and_its_block():
    facts = {
        "license": f"mit{LINES}",
        "dataset": "text\u2028\x1b]0;x\x07",
        "command": f"fairseq-train DATA --valid-subset 'a{LINES}'",
        "data": {f"train.en{LINES}": "0" * 64, "": "```", "b": f"1\x9b{LINES}"},
    }
    made = card.make(
        "model",
        folder="model",
        architecture="hybonet",
        languages=("en", "de"),
        facts=facts,
        spaces=[Space("euclidean")],
        parameters=1,
        precision="half",
    )
    lines = made.splitlines()
    assert [line for line in lines if line.startswith("#")] == ["# model", "## Training"]
    assert not {*made} & {*"\x1b\x07\x9b\u2028"}
    assert lines[-5:] == [
        # a mark that none of the lines has
        "````",
        f"{'0' * 64}  train.en ``` # Heading ",
        "```  ",
        "1\ufffd ``` # Heading   b",
        "````",
    ]


def test_languages_and_names_are_what_they_are_for_yaml_and_python():
    library = pytest.importorskip("huggingface_hub")
    made = card.make(
        'a "b"',
        folder='a "b"',
        architecture="hybonet",
        languages=("en", "no"),
        facts={},
        spaces=[Space("euclidean")],
        parameters=1,
        precision="half",
    )
    assert library.ModelCard(made).data.language == ["en", "no"]
    (loaded,) = re.findall(r"^model = hyptrans.load\((.*)\)$", made, re.MULTILINE)
    assert ast.literal_eval(loaded) == 'a "b"'
    assert hub._LOADED.search(made.encode())
