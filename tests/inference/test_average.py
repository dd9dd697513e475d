import math

import numpy as np
import pytest
import torch
from fairseq import checkpoint_utils

from hyptrans.fairseq import average
from hyptrans.geometry import lorentz
from hyptrans.models.euclidean import UNSET
from hyptrans.support.errors import UserError
from tests.inference.conftest import load

POINTS = (
    "encoder.embed_tokens.weight",
    "decoder.embed_tokens.weight",
    "decoder.logits.table.weight",
)


def moved(path, out, *, seed, updates=3):
    """A checkpoint whose parameters lie about those of another; points stay points."""
    state = torch.load(path, weights_only=True)
    rng = torch.Generator().manual_seed(seed)
    for name, tensor in state["model"].items():
        if name.endswith(UNSET):
            tensor.fill_(seed)
        elif tensor.is_floating_point():
            tensor += 0.3 * torch.randn(tensor.shape, generator=rng)
            if name in POINTS and "'manifold'" in str(state["cfg"]["model"]):
                c = state["cfg"]["model"]["curvature"]
                tensor[:] = lorentz.lift(tensor[..., 1:], c=c)
    state["optimizer_history"][0]["num_updates"] = updates
    state["last_optimizer_state"] = {"state": torch.ones(5)}
    torch.save(state, out)
    return out


def several(path, folder):
    folder.mkdir(exist_ok=True)
    return [moved(path, folder / f"checkpoint_1_{n}.pt", seed=n, updates=n) for n in (1, 2, 3)]


def parameters(path):
    return torch.load(path, weights_only=True)["model"]


def test_average_refuses_checkpoints_that_are_not_finite(make, tmp_path):
    paths = several(make("transformer"), tmp_path / "run")
    state = torch.load(paths[1], weights_only=True)
    state["model"]["encoder.layers.0.fc1.bias"][0] = math.nan
    torch.save(state, paths[1])
    wanted = r"encoder\.layers\.0\.fc1\.bias is not finite in all of these checkpoints"
    with pytest.raises(UserError, match=wanted):
        average.average(paths)


def test_average_takes_any_value_of_the_number_that_fairseq_never_sets(make, tmp_path):
    paths = several(make("transformer"), tmp_path / "run")
    state = torch.load(paths[1], weights_only=True)
    unset = [name for name in state["model"] if name.endswith(UNSET)]
    for name in unset:
        state["model"][name].fill_(math.nan)
    torch.save(state, paths[1])
    found = average.average(paths)["model"]
    assert unset
    assert all(found[name].isnan().all() for name in unset)


@pytest.mark.parametrize("arch", ["hybonet", "hypformer", "hvt", "transformer"])
def test_average_takes_centroids_of_points_and_means_of_the_rest(arch, make, tmp_path):
    c = 0.5 if arch == "hvt" else 1.0
    flat = arch == "transformer"
    flags = [] if flat else ["--embedding-storage", "manifold", "--curvature", str(c)]
    paths = several(make(arch, *flags), tmp_path / "run")
    models = [parameters(path) for path in paths]
    found = average.average(paths)["model"]
    for name, tensor in found.items():
        rows = np.stack([model[name].double().numpy() for model in models])
        assert tensor.dtype == models[0][name].dtype
        if name in POINTS and not flat:
            total = rows.sum(0)
            squared = total[:, 0] ** 2 - (total[:, 1:] ** 2).sum(-1)
            wanted = total / np.sqrt(c * squared)[:, None]
            assert lorentz.violation(tensor, c=c).max() < 1e-6
        else:
            wanted = rows.mean(0)
        np.testing.assert_allclose(tensor.numpy(), wanted, rtol=1e-6, atol=1e-6, err_msg=name)
    # which the mean is not
    means = np.stack([model[POINTS[0]].numpy() for model in models]).mean(0)
    assert flat == np.allclose(found[POINTS[0]].numpy(), means, atol=1e-3)


def test_average_loads_everywhere_and_omits_the_optimizer(make, texts, tmp_path):
    paths = several(make("hybonet"), tmp_path / "run")
    out = tmp_path / "average.pt"
    average.write(average.average(paths), out)
    assert torch.load(out, weights_only=True)["last_optimizer_state"] is None
    (model,), _ = checkpoint_utils.load_model_ensemble([str(out)])
    assert torch.equal(model.encoder.embed_tokens.weight, parameters(out)[POINTS[0]])
    assert len(load(out).translate(texts)) == len(texts)


def test_a_shared_table_stays_one_tensor(make, tmp_path):
    found = average.average(several(make("hybonet", "--share-all-embeddings"), tmp_path / "run"))
    tables = [found["model"][f"{side}.embed_tokens.weight"] for side in ("encoder", "decoder")]
    assert tables[0].data_ptr() == tables[1].data_ptr()


def test_average_refuses_checkpoints_of_different_models(make, tmp_path):
    paths = several(make("hybonet"), tmp_path / "run")
    others = [make("hybonet", "--curvature=0.5"), make("hybonet", "--hybonet-residual=space")]
    for path, words in zip(paths, ("a", "a", "b"), strict=True):
        state = torch.load(path, weights_only=True)
        torch.save({**state, "dictionaries": {"source": words, "target": "c"}}, path)
    for other in (make("han"), *others):
        with pytest.raises(UserError, match="are of different models or dictionaries"):
            average.average([make("hybonet"), other])
    with pytest.raises(UserError, match="are of different models or dictionaries"):
        average.average(paths)
    average.average(paths[:2])
    average.average([make("hybonet"), make("hybonet", "--dropout=0.2")])


@pytest.mark.parametrize("storage", ["manifold", "space"])
def test_sizes_that_contradict_the_parameters_are_refused(storage, make):
    path = make("hybonet", "--embedding-storage", storage)
    state = torch.load(path, weights_only=True)
    state["cfg"]["model"]["encoder_ffn_embed_dim"] = 1 << 18
    torch.save(state, path)
    with pytest.raises(UserError, match=r"\.pt cannot be averaged: .*\(262144, 16\) by its"):
        average.average([path])


def test_last_chooses_the_newest_checkpoints_whatever_their_names(make, tmp_path):
    names = {"_1_100": 100, "_1_200": 200, ".best_loss_4.0_200": 200, "_last": 250, "_best": 100}
    for name, updates in names.items():
        out = tmp_path / f"checkpoint{name}.pt"
        moved(make("transformer"), out, seed=updates, updates=updates)
    chosen = average.newest(tmp_path, 3)
    updates = [torch.load(path)["optimizer_history"][0]["num_updates"] for path in chosen]
    assert updates == [100, 200, 250]
    # nor is an average among them
    average.write(average.average(chosen), tmp_path / "checkpoint_average.pt")
    assert average.newest(tmp_path, 3) == chosen
    with pytest.raises(UserError, match="has 3 checkpoints to choose 4 from"):
        average.newest(tmp_path, 4)


def test_error_names_a_file_that_is_not_a_checkpoint(make, tmp_path):
    (tmp_path / "checkpoint1.pt").touch()
    with pytest.raises(UserError, match=r"checkpoint1\.pt is cut short .* \(\w[^()]*\)$"):
        average.newest(tmp_path, 1)
    with pytest.raises(OSError, match=r"none\.pt"):
        average.average([make("hybonet"), tmp_path / "none.pt"])
