import ast
import re
from types import SimpleNamespace

import pytest
from torch import nn

from hyptrans.geometry.space import Space
from hyptrans.inference.sharing import card, hub

LINES = "\n```\n\n# Heading\n"


def made(name="model", *, folder="model", languages=("en", "de"), **facts):
    about = SimpleNamespace(architecture="hybonet", languages=languages, facts=facts)
    model = nn.Linear(1, 1)
    model.encoder = SimpleNamespace(state_spaces=lambda: [Space("euclidean")])
    return card.make(name, about, model, folder=folder, precision="half")


def test_card_escapes_text_from_the_checkpoint():
    facts = {
        "license": f"mit{LINES}",
        "dataset": "text\u2028\x1b]0;x\x07",
        "command": f"fairseq-train DATA --valid-subset 'a{LINES}'",
        "data": {f"train.en{LINES}": "0" * 64, "": "```", "b": f"1\x9b{LINES}"},
    }
    text = made(**facts)
    lines = text.splitlines()
    assert [line for line in lines if line.startswith("#")] == ["# model", "## Training"]
    assert not {*text} & {*"\x1b\x07\x9b\u2028"}
    assert lines[-5:] == [
        # a mark that none of the lines has
        "````",
        f"{'0' * 64}  train.en ``` # Heading ",
        "```  ",
        "1\ufffd ``` # Heading   b",
        "````",
    ]


def test_card_quotes_languages_and_names_for_yaml_and_python():
    library = pytest.importorskip("huggingface_hub")
    data = 'Tatoeba, "short" sentences: 2026'
    scores = [{"name": "BLEU", "value": 1.5, "signature": "s"}]
    known = {"dataset": "of the training", "test": data, "scores": scores}
    text = made('a "b"', folder='a "b"', languages=("en", "no"), **known)
    found = library.ModelCard(text).data
    assert found.language == ["en", "no"]
    (result,) = found.eval_results
    assert (result.dataset_name, result.metric_value) == (data, 1.5)
    (loaded,) = re.findall(r"^model = hyptrans.load\((.*)\)$", text, re.MULTILINE)
    assert ast.literal_eval(loaded) == 'a "b"'
    assert hub._LOADED.search(text.encode())
