"""Models of earlier releases load, translate and train as they did in their release.

``models.tar.xz`` has a data folder, a checkpoint of each architecture as ``fairseq-train`` wrote it
and the model folder that ``hyptrans export`` made of it. ``expected.json`` has what the release
itself computed by the calls below.
"""

import json
import tarfile
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

import hyptrans
from tests.models.conftest import right_padded

HERE = Path(__file__).parent
RELEASES = sorted(path.parent for path in HERE.glob("*/expected.json"))
CASES = [
    pytest.param(release, name, id=f"{release.name}-{name}")
    for release in RELEASES
    for name in json.loads((release / "expected.json").read_text())["models"]
]
TOLERANCE = 1e-5
"""Of log-probabilities in float32, and of losses in float64."""


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """A folder of each release's models, by its name."""
    places = {release.name: tmp_path_factory.mktemp(release.name) for release in RELEASES}
    for release in RELEASES:
        with tarfile.open(release / "models.tar.xz") as archive:
            # older versions of Python lack it; newer ones warn without it
            how = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
            archive.extractall(places[release.name], **how)
    return places


def expected(release, name):
    return json.loads((release / "expected.json").read_text())["models"][name]


@pytest.mark.parametrize(("release", "name"), CASES)
def test_released_checkpoint_and_folder_keep_their_translations(release, name, unpacked):
    place, wanted = unpacked[release.name], expected(release, name)
    models = (
        hyptrans.load(place / f"{name}.pt", data=place / "data"),
        hyptrans.load(place / "folders" / name),
    )
    for model in models:
        found = [one[0] for one in model.n_best(wanted["sources"], 1, beam=3)]
        assert [one.text for one in found] == wanted["translations"]
        assert [one.score for one in found] == pytest.approx(wanted["scores"], abs=TOLERANCE)
        scores = model.score(wanted["sources"], wanted["targets"])
        assert scores == pytest.approx(wanted["log_probabilities"], rel=TOLERANCE, abs=TOLERANCE)


@pytest.mark.parametrize(("release", "name"), CASES)
def test_thirty_updates_reproduce_the_released_losses(release, name, unpacked):
    wanted = expected(release, name)
    if wanted["losses"] is None:
        pytest.skip("Adam does not keep its embeddings on their space")
    place = unpacked[release.name]
    loaded = hyptrans.load(place / f"{name}.pt", data=place / "data", dtype="float64")
    model = loaded.models[0].train().requires_grad_()
    words = model.decoder.dictionary
    source, target = (
        [[words.index(word) for word in text.split()] for text in wanted[side]]
        for side in ("sources", "targets")
    )
    ended = [right_padded([[*row, words.eos()] for row in one], 1) for one in (source, target)]
    previous = right_padded([[words.eos(), *row] for row in target], 1)
    adam, found = torch.optim.Adam(model.parameters(), lr=5e-3), []
    for _ in range(30):
        logits = model(ended[0], previous).flatten(0, 1)
        loss = F.cross_entropy(logits, ended[1].flatten(), ignore_index=words.pad())
        adam.zero_grad()
        loss.backward()
        adam.step()
        found.append(loss.item())
    assert found == pytest.approx(wanted["losses"], abs=TOLERANCE)
