import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from hyptrans.inference.sharing import folder
from hyptrans.support.errors import UserError
from tests.inference.conftest import ARCHS, export, load, same_states

TIED = ["--share-decoder-input-output-embed"]
ALL_TIED = ["--share-all-embeddings"]
MANIFOLD = ["--embedding-storage", "manifold"]
POINTS = [arch for arch in ARCHS if arch not in ("han", "transformer")]
"""Architectures whose embeddings can be kept as points."""


def cases(*tables):
    """Architectures with the ways to share tables, and to keep points."""
    ways = [(arch, []) for arch in ARCHS] + [(arch, MANIFOLD) for arch in POINTS]
    return [(arch, [*storage, *tied]) for arch, storage in ways for tied in tables]


CASES = [(False, *case) for case in cases([], TIED, ALL_TIED)]
CASES += [(False, "transformer", ["--encoder-normalize-before", "--decoder-normalize-before"])]
CASES += [(False, "hybonet", ["--no-encoder-learned-pos", "--curvature", "0.5"])]
CASES += [pytest.param(True, *case, marks=pytest.mark.slow) for case in cases([], TIED)]


@pytest.mark.parametrize(("separate", "arch", "flags"), CASES, ids=str)
def test_a_folder_and_its_checkpoint_give_the_same_tokens(
    separate, arch, flags, prepared, make_of, texts, tmp_path
):
    """Both sides have one dictionary, as ``--joined-dictionary`` makes it, or each its own."""
    data, more = prepared, [f"more{i} 1" for i in range(8)] if separate else []
    if separate:
        data = shutil.copytree(prepared, tmp_path / "data")
        target = data / "data-bin" / "dict.de.txt"
        # the same words at other places, and more of them
        words = [*reversed(target.read_text().splitlines()), *more]
        target.write_text("".join(f"{word}\n" for word in words))
    path = make_of(data, arch, *flags)
    first, out = load(path), export(path, tmp_path / "out")
    moved = shutil.move(out, tmp_path / "elsewhere")
    second = load(moved)
    assert same_states(first, second)
    one, other = (model.n_best(texts, 3, beam=3) for model in (first, second))
    assert one == other
    assert len({hypotheses[0].score for hypotheses in one}) > 5
    assert [path.name for path in moved.iterdir() if path.suffix in (".pt", ".bin", ".pkl")] == []
    source, target = second.dictionary_sizes
    assert target == source + len(more)


@pytest.mark.parametrize("arch", ARCHS)
def test_half_precision_matches_the_rounded_checkpoint(arch, make, texts, tmp_path):
    path = make(arch)
    state = torch.load(path, weights_only=True)
    state["model"] = {
        name: tensor.half().float() if tensor.is_floating_point() else tensor
        for name, tensor in state["model"].items()
    }
    torch.save(state, tmp_path / "rounded.pt")
    half = load(export(path, tmp_path / "half", precision="half"))
    assert half.translate(texts) == load(tmp_path / "rounded.pt").translate(texts)
    weights = load_file(tmp_path / "half" / folder.WEIGHTS)
    assert {tensor.dtype for tensor in weights.values()} <= {torch.float16, torch.int64}


def test_numbers_too_large_for_half_precision_are_refused(make, tmp_path):
    path = make("transformer")
    state = torch.load(path, weights_only=True)
    state["model"]["encoder.layers.0.fc1.bias"][0] = 1e6
    torch.save(state, path)
    with pytest.raises(UserError, match=r"expand\.bias is too large for half precision"):
        export(path, tmp_path / "half", precision="half")
    assert not (tmp_path / "half").exists()


def test_export_overwrites_no_folder_with_foreign_files(make, written):
    for place, name, said in (
        (written.parent / "mine", "notes.txt", "is not a model folder"),
        (written, "checkpoint_best.pt", "holds checkpoint_best.pt, which hyptrans export did not"),
        (written, "a/b", "holds a, which hyptrans export did not"),
    ):
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text("mine")
        with pytest.raises(UserError, match=f"{place.name} already exists and {said}"):
            export(make("han"), place)
        assert (place / name).read_text() == "mine"
    assert load(written).architecture == "hybonet"


def test_export_replaces_a_folder_as_a_whole(make, written, tmp_path):
    (tmp_path / "link").symlink_to(written)
    export(make("han"), tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert load(written).architecture == "han"
    (tmp_path / "usual").mkdir()
    assert written.stat().st_mode == (tmp_path / "usual").stat().st_mode
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {"link", "model", "usual"}


def test_a_failed_export_keeps_the_old_folder(make, written, monkeypatch):
    rename = Path.rename

    def failing(self, target):
        if self.name == "new":
            raise OSError("no")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(OSError, match="no"):
        export(make("han"), written)
    assert load(written).architecture == "hybonet"
    assert [path.name for path in written.parent.iterdir() if path.is_dir()] == ["model"]
