"""Encoders of checkpoints and model folders, against the models that they were made of."""

import itertools

import pytest
import torch

from hyptrans.inference.load import SHIPPED, read
from hyptrans.support.errors import UserError
from probing.states.model import ModelEncoder, is_model_folder
from tests.inference.conftest import export
from tests.probing.commands.runs import subjects
from tests.probing.helpers.model import make_checkpoint, prepared_folder

ARCHS = {name: [] for name in ("hybonet", "hypformer", "han", "transformer")}
ARCHS |= {"hvt": ["--curvature", "0.5"], "euclidean_tiny": ["--encoder-normalize-before"]}
SPACES = {"hybonet": "lorentz", "hypformer": "lorentz", "hvt": "poincare"}


def load(place, data=None, *, random=False, seed=1):
    return ModelEncoder(read(place, data=data), place, random=random, seed=seed)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return prepared_folder(tmp_path_factory.mktemp("data") / "mine")


@pytest.fixture(scope="module", params=ARCHS)
def made(request, data, tmp_path_factory):
    """A checkpoint and the model of fairseq's door that wrote it."""
    path = tmp_path_factory.mktemp("runs") / f"{request.param}.pt"
    user_dir = None if request.param == "transformer" else "hyptrans"
    return path, make_checkpoint(
        path, data, request.param, *ARCHS[request.param], user_dir=user_dir
    )


def tokens_of(encoder, *lengths):
    rng = torch.Generator().manual_seed(0)
    rows = torch.full((len(lengths), max(lengths) + 1), encoder.pad)
    for row, length in zip(rows, lengths, strict=True):
        row[:length] = torch.randint(4, 30, (length,), generator=rng)
        row[length] = 2
    return rows, torch.tensor(lengths) + 1


def test_states_match_the_training_model_without_dropout(made, data):
    path, model = made
    encoder = load(path, data)
    tokens, lengths = tokens_of(encoder, 5, 9, 2)
    model.train()
    for module in model.modules():
        for name in ("p", "dropout", "dropout_p"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)
    out = model.encoder(tokens, lengths, return_all_hiddens=True)
    states, real = encoder.states(tokens, lengths), tokens.ne(encoder.pad)
    assert states.shape == (3, 3, 10, 16)
    for got, want in zip(states[:-1], out["encoder_states"], strict=False):
        torch.testing.assert_close(got[real], want.transpose(0, 1)[real], atol=2e-5, rtol=2e-5)
    last = out["encoder_out"][0].transpose(0, 1)
    torch.testing.assert_close(states[-1][real], last[real], atol=2e-5, rtol=2e-5)


def test_padding_changes_no_state(made, data):
    path, _ = made
    encoder = load(path, data)
    tokens, lengths = tokens_of(encoder, 4, 9)
    together = encoder.states(tokens, lengths)[:, 0, :5]
    alone = encoder.states(tokens[:1, :5], lengths[:1])[:, 0]
    torch.testing.assert_close(together, alone, atol=2e-5, rtol=2e-5)
    assert [space.kind for space in encoder.spaces] == [SPACES.get(path.stem, "euclidean")] * 3
    if path.stem == "hvt":
        assert {space.c for space in encoder.spaces} == {0.5}


def test_fresh_parameters_depend_only_on_the_seed(made, data):
    state = torch.random.get_rng_state()
    encoders = [load(made[0], data, random=True, seed=seed) for seed in (3, 3, 4)]
    encoders.append(load(made[0], data))
    assert torch.equal(torch.random.get_rng_state(), state)
    first, *others = (encoder.states(*tokens_of(encoder, 7)) for encoder in encoders)
    assert [torch.equal(first, other) for other in others] == [True, False, False]


def test_a_model_folder_gives_the_states_of_its_checkpoint(made, data, tmp_path):
    checkpoint = load(made[0], data)
    place = export(made[0], tmp_path / "model", data=data)
    assert is_model_folder(place)
    assert not is_model_folder(tmp_path)
    (subject,) = subjects("--hf", place)
    folder = subject.load(1)
    text = "the dog sees \u4f60 caf\u00e9"
    assert folder.tokenize(text) == checkpoint.tokenize(text)
    wanted = checkpoint.states(*tokens_of(checkpoint, 5))
    assert torch.equal(folder.states(*tokens_of(folder, 5)), wanted)
    assert (folder.spaces, folder.max_tokens) == (checkpoint.spaces, checkpoint.max_tokens)
    (place / "model.safetensors").unlink()
    with pytest.raises(UserError, match=r"model\.safetensors"):
        load(place)


def test_a_source_is_identified_by_its_file_contents(tmp_path):
    files = [tmp_path / "a.pt", tmp_path / "bin" / "dict.en.txt", tmp_path / "m.model"]
    files[1].parent.mkdir()
    for file in files:
        file.write_text("one")
    model = ["--sentencepiece-model", files[2]]
    (subject,) = subjects("--checkpoint", files[0], "--data", files[1].parent, *model)
    found = [subject.made_from()]
    for file in files:
        file.write_text("two")
        found.append(subject.made_from())
    assert all(one != other for one, other in itertools.combinations(found, 2))


def test_a_bundled_model_loads_by_name():
    (subject,) = subjects("--hf", "tatoeba-en-de")
    assert (subject.name, subject.place) == ("tatoeba-en-de", SHIPPED / "tatoeba-en-de")
    assert subject.load(1).architecture == "hybonet_plus_iwslt_d64"
