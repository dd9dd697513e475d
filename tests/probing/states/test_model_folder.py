"""Our own model folders by ``--hf``, against the checkpoints that they were made of."""

import shutil

import pytest
import torch

from hyptrans.support.errors import UserError
from probing.states.checkpoint import from_checkpoint
from probing.states.extract import extract
from probing.states.huggingface import from_hugging_face
from probing.text.trees import read_conllu
from tests.inference.conftest import export
from tests.probing.helpers.model import make_checkpoint, prepared_folder, sentences
from tests.probing.helpers.trees import conllu

ARCHS = ("hybonet", "hybonet_plus", "hypformer", "han", "hvt", "transformer")
UNKNOWN = "\u4f60 caf\u00e9"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return prepared_folder(tmp_path_factory.mktemp("data") / "mine")


@pytest.fixture(scope="module", params=ARCHS)
def both(request, data, tmp_path_factory):
    place = tmp_path_factory.mktemp(request.param)
    make_checkpoint(place / "a.pt", data, request.param, user_dir="hyptrans")
    return place / "a.pt", export(place / "a.pt", place / "model", data=data)


def test_states_are_those_of_the_checkpoint(both, data, tmp_path):
    trees = tmp_path / "t.conllu"
    trees.write_text(conllu([*sentences(6, seed=5), UNKNOWN]), encoding="utf-8")
    encoders = from_checkpoint(both[0], data=data), from_hugging_face(str(both[1]))
    parsed = read_conllu(trees)
    wanted, found = (
        extract(encoder, parsed, tmp_path / str(i), trees=trees)
        for i, encoder in enumerate(encoders)
    )
    assert found.spaces == wanted.spaces
    assert (found.layers, found.width) == (wanted.layers, wanted.width)
    assert (found.kept, found.contents.unknown) == (wanted.kept, wanted.contents.unknown)
    assert found.contents.unknown
    for i in found.kept:
        assert torch.equal(found.sentence(i), wanted.sentence(i))
    assert encoders[0].max_tokens == encoders[1].max_tokens


def test_fresh_parameters_follow_their_seed_alone(both):
    state = torch.random.get_rng_state()
    made = [from_hugging_face(str(both[1]), random=True, seed=seed) for seed in (3, 3, 4)]
    made.append(from_hugging_face(str(both[1])))
    assert torch.equal(torch.random.get_rng_state(), state)
    tokens = torch.tensor([[5, 6, 2]])
    first, *others = (encoder.states(tokens, torch.tensor([3])) for encoder in made)
    assert [torch.equal(first, other) for other in others] == [True, False, False]
    assert made[0].random


def test_a_damaged_folder_is_told_of(both, data, tmp_path):
    place = shutil.copytree(both[1], tmp_path / "model")
    (place / "model.safetensors").unlink()
    with pytest.raises(UserError, match=r"model\.safetensors"):
        from_hugging_face(str(place))
