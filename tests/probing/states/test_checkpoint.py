import os
import pickle
import re

import pytest
import torch

from hyptrans.fairseq.states import all_states, spaces_of
from hyptrans.support.errors import UserError
from probing.states.checkpoint import load_model
from tests.probing.helpers.model import load_dictionary, make_checkpoint, prepared_folder

ARCHS = {
    "hybonet": [],
    "hypformer": [],
    "hvt": ["--curvature", "0.5"],
    "han": [],
    "transformer": [],
    "transformer_pre_norm": ["--encoder-normalize-before"],
    "euclidean_tiny": [],
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return prepared_folder(tmp_path_factory.mktemp("data") / "mine")


@pytest.fixture(scope="module", params=ARCHS)
def made(request, data, tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / f"{request.param}.pt"
    arch = request.param.removesuffix("_pre_norm")
    user_dir = None if arch == "transformer" else "hyptrans"
    return path, make_checkpoint(path, data, arch, *ARCHS[request.param], user_dir=user_dir)


def tokens_of(dictionary, *lengths):
    rng = torch.Generator().manual_seed(0)
    rows = torch.full((len(lengths), max(lengths) + 1), dictionary.pad())
    for row, length in zip(rows, lengths, strict=True):
        row[:length] = torch.randint(dictionary.nspecial, len(dictionary), (length,), generator=rng)
        row[length] = dictionary.eos()
    return rows


def test_encoder_has_the_parameters_of_the_checkpoint(made, data):
    path, model = made
    loaded = load_model(path, data)
    assert not loaded.model.encoder.training
    for name, parameter in model.encoder.named_parameters():
        if "proj_" not in name and not re.search(r"fc\d_", name):  # fairseq's copies
            torch.testing.assert_close(loaded.model.encoder.get_parameter(name), parameter)


def test_states_are_those_of_a_model_in_training_mode_without_dropout(made, data):
    # in training fairseq takes its plain layers, in evaluation its fused ones
    path, model = made
    loaded = load_model(path, data)
    tokens = tokens_of(loaded.dictionary, 5, 9, 2)
    model.train()
    for module in model.modules():
        for name in ("p", "dropout", "dropout_p"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)
    out = model.encoder(tokens, tokens.ne(1).sum(1), return_all_hiddens=True)
    states = all_states(loaded.model.encoder, tokens)
    real = tokens.ne(loaded.dictionary.pad())
    assert states.shape == (3, 3, 10, 16)
    for got, want in zip(states[:-1], out["encoder_states"], strict=False):
        torch.testing.assert_close(got[real], want.transpose(0, 1)[real], atol=2e-5, rtol=2e-5)
    last = out["encoder_out"][0].transpose(0, 1)
    torch.testing.assert_close(states[-1][real], last[real], atol=2e-5, rtol=2e-5)


def test_padding_changes_no_state(made, data):
    loaded = load_model(made[0], data)
    tokens = tokens_of(loaded.dictionary, 4, 9)
    together = all_states(loaded.model.encoder, tokens)[:, 0, :5]
    alone = all_states(loaded.model.encoder, tokens[:1, :5])[:, 0]
    torch.testing.assert_close(together, alone, atol=2e-5, rtol=2e-5)


def test_space_of_every_state_is_known(made, data):
    path, _ = made
    loaded = load_model(path, data)
    kind = {"hybonet": "lorentz", "hypformer": "lorentz", "hvt": "poincare"}
    spaces = spaces_of(loaded.model.encoder)
    assert [space.kind for space in spaces] == [kind.get(path.stem, "euclidean")] * 3
    if path.stem == "hvt":
        assert {space.c for space in spaces} == {0.5}


def test_random_encoder_follows_its_seed_alone(made, data):
    path, model = made
    state = torch.random.get_rng_state()
    first, again, other = (load_model(path, data, random=True, seed=seed) for seed in (3, 3, 4))
    assert torch.equal(torch.random.get_rng_state(), state)
    tokens = tokens_of(first.dictionary, 7)
    states = [all_states(loaded.model.encoder, tokens) for loaded in (first, again, other)]
    assert torch.equal(states[0], states[1])
    assert not torch.allclose(states[0], states[2])
    name = "embed_tokens.weight"
    assert not torch.allclose(
        first.model.encoder.get_parameter(name), model.encoder.get_parameter(name)
    )


def test_learned_curvature_is_that_of_the_checkpoint(data, tmp_path):
    model = make_checkpoint(tmp_path / "h.pt", data, "hypformer")
    spaces = spaces_of(load_model(tmp_path / "h.pt", data).model.encoder)
    assert spaces == model.encoder.state_spaces()
    assert spaces[0].c != pytest.approx(1.0)


def test_other_dictionary_is_named_with_both_sizes(data, tmp_path):
    make_checkpoint(tmp_path / "a.pt", data, "hybonet")
    other = prepared_folder(tmp_path / "other", size=36)
    sizes = [len(load_dictionary(folder)) for folder in (other, data)]
    with pytest.raises(
        UserError,
        match=rf"other/data-bin/dict.en.txt has {sizes[0]} .* has {sizes[1]}: .*--data",
    ):
        load_model(tmp_path / "a.pt", other)


def change(path, **values):
    state = torch.load(path, weights_only=True)
    state["cfg"]["model"].update(values)
    torch.save(state, path)


@pytest.mark.parametrize(
    ("user_dir", "told"), [("plugins/mine", "with --user-dir plugins/mine"), (None, "without")]
)
def test_architecture_that_is_not_registered_asks_for_user_dir(data, tmp_path, user_dir, told):
    make_checkpoint(tmp_path / "a.pt", data, "hybonet", user_dir=user_dir)
    change(tmp_path / "a.pt", _name="elsewhere_base", arch="elsewhere_base")
    with pytest.raises(UserError, match=f"elsewhere_base .*{told}.* --user-dir"):
        load_model(tmp_path / "a.pt", data)


def test_user_dir_brings_an_architecture(data, tmp_path):
    plugin = tmp_path / "my_plugin"
    plugin.mkdir()
    (plugin / "__init__.py").write_text(
        "from fairseq.models import register_model_architecture as register\n"
        "from fairseq.models.transformer import base_architecture\n"
        "register('transformer', 'mine_of_the_test')(base_architecture)\n"
    )
    make_checkpoint(tmp_path / "a.pt", data, "transformer")
    state = torch.load(tmp_path / "a.pt", weights_only=True)
    state["cfg"]["model"].arch = state["cfg"]["model"]._name = "mine_of_the_test"
    torch.save(state, tmp_path / "a.pt")
    with pytest.raises(UserError, match="mine_of_the_test"):
        load_model(tmp_path / "a.pt", data)
    loaded = load_model(tmp_path / "a.pt", data, user_dir=str(plugin))
    assert loaded.architecture == "mine_of_the_test"


class Attack:
    def __reduce__(self):
        return os.mkdir, ("owned",)


@pytest.mark.parametrize("content", ["text", "pickle", "zip", "numbers", "cut"])
def test_file_that_is_no_checkpoint_is_refused_and_runs_nothing(
    data, tmp_path, content, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "bad.pt"
    if content == "text":
        path.write_text("hello")
    elif content == "pickle":
        path.write_bytes(pickle.dumps({"model": Attack()}))
    elif content == "zip":
        torch.save({"model": Attack(), "cfg": {}}, path)
    elif content == "numbers":
        torch.save({"weights": torch.ones(3)}, path)
    else:
        make_checkpoint(path, data, "transformer")
        path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(UserError, match=r"bad\.pt") as caught:
        load_model(path, data)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize("random", [False, True])
def test_a_checkpoint_of_an_earlier_version_is_refused_by_name(data, tmp_path, random):
    path = tmp_path / "old.pt"
    make_checkpoint(path, data, "hybonet")
    state = torch.load(path, weights_only=False)
    del state["model"]["version"]
    torch.save(state, path)
    wanted = r"old\.pt cannot be used: it was written by hyptrans 0\.1\.0"
    with pytest.raises(UserError, match=wanted):
        load_model(path, data, random=random)


def test_missing_files_are_named(data, tmp_path):
    with pytest.raises(UserError, match=r"none\.pt is not a file"):
        load_model(tmp_path / "none.pt", data)
    make_checkpoint(tmp_path / "a.pt", data, "transformer")
    (tmp_path / "empty").mkdir()
    for folder in ("empty", "absent"):
        with pytest.raises(UserError, match=f"--data.*{folder}"):
            load_model(tmp_path / "a.pt", tmp_path / folder)
    with pytest.raises(UserError, match="--user-dir nowhere"):
        load_model(tmp_path / "a.pt", data, user_dir="nowhere")
    # data-bin itself will do
    assert load_model(tmp_path / "a.pt", data / "data-bin").dictionary == load_dictionary(data)


def test_encoder_without_layers_is_refused(data, tmp_path):
    from fairseq.models.lstm import LSTMModel  # noqa: F401 - registers it

    from tests.probing.helpers import model as model_helpers

    small, model_helpers.SMALL[:] = list(model_helpers.SMALL), []
    try:
        make_checkpoint(tmp_path / "l.pt", data, "lstm", "--encoder-embed-dim", "8")
    finally:
        model_helpers.SMALL[:] = small
    with pytest.raises(UserError, match="lstm does not hand out"):
        load_model(tmp_path / "l.pt", data)


def test_parameters_of_other_sizes_are_told(data, tmp_path):
    make_checkpoint(tmp_path / "a.pt", data, "hybonet")
    change(tmp_path / "a.pt", encoder_ffn_embed_dim=64)
    with pytest.raises(UserError, match=r"a\.pt does not fit its architecture .*size mismatch"):
        load_model(tmp_path / "a.pt", data)
