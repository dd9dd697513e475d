"""The models that come with the package: their scores guard every formula on their way."""

import json
from pathlib import Path

import pytest

import hyptrans
from hyptrans.data.sources import tatoeba
from hyptrans.evaluation import scores
from hyptrans.inference.load import SHIPPED, shipped
from hyptrans.kernels import backend
from hyptrans.support.files import sha256
from tests.real_data import real_data


@pytest.fixture(scope="module")
def test_set(tmp_path_factory):
    """The test set of its recipe, split anew."""
    pairs = tatoeba.read_table(real_data() / "tatoeba_en_de" / "deu-eng.zip")
    sets, _ = tatoeba.split(pairs, held_out=2000, seed=1)
    folder = tmp_path_factory.mktemp("tatoeba") / "split"
    tatoeba.write(sets, folder)
    return {language: folder / f"test.{language}" for language in ("en", "de")}


def facts(name):
    config = json.loads((SHIPPED / name / "config.json").read_text(encoding="utf-8"))
    return config["facts"]


@pytest.mark.slow
@pytest.mark.parametrize("kernels", ["numba", "eager"])
@pytest.mark.parametrize("name", shipped())
def test_bundled_model_reaches_its_cards_scores_on_both_backends(
    name, kernels, test_set, monkeypatch
):
    monkeypatch.setattr(backend, "CHOSEN", kernels)
    source, target = name.split("-")[1:]
    known = facts(name)
    for language, path in test_set.items():
        assert sha256(path) == known["data"][f"test.{language}"]
    translations = hyptrans.load(name).translate(scores.read_text(test_set[source]))
    references = scores.read_text(test_set[target])
    found = {"BLEU": scores.bleu, "chrF": scores.chrf}
    for one in known["scores"]:
        assert found[one["name"]](translations, references).value == one["value"]
    # the graphs have 8 bits
    rounded = hyptrans.load(name, engine="onnx").translate(scores.read_text(test_set[source]))
    of_both = [scores.bleu(each, references).value for each in (translations, rounded)]
    assert abs(of_both[0] - of_both[1]) < 0.3


@pytest.mark.parametrize("name", shipped())
def test_bundled_model_is_small_and_names_its_origin(name):
    sizes = [path.stat().st_size for path in (SHIPPED / name).iterdir()]
    assert sum(sizes) <= 6 << 20
    known = facts(name)
    assert all(known[key] for key in ("license", "dataset", "command", "updates", "scores"))
    card = (SHIPPED / name / "README.md").read_text(encoding="utf-8")
    for one in known["scores"]:
        assert f"| {one['name']} | {one['value']:.2f} | `{one['signature']}` |" in card
    assert known["command"] in card
    assert str(Path.home()) not in card
    assert "/home" not in card
