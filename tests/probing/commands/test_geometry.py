"""``hyptrans probe geometry``: the figures are those of the states, and what goes wrong."""

import json
import math
import shutil
from functools import partial

import pytest
import torch

from hyptrans.geometry.space import Space
from hyptrans.inference.load import SHIPPED, read
from hyptrans.inference.sharing import folder
from probing.commands.cli import main
from probing.geometry.layers import Layer, verdict
from probing.geometry.measures import Estimate
from probing.geometry.states import both_sides
from probing.states.model import build_model
from tests.probing.commands.runs import error_of
from tests.probing.helpers.model import (
    binarize,
    exchange_words,
    make_checkpoint,
    prepared_folder,
    sentences,
)
from tests.programs import MAIN, python

ARCHS = {
    "hybonet": ["hybonet_tiny"],
    "hvt": ["hvt_tiny"],
    "twin": ["euclidean_tiny"],
    "prenorm": ["euclidean_tiny", "--encoder-normalize-before", "--decoder-normalize-before"],
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Checkpoints, and a data folder with a binarized set of sentence pairs."""
    place = tmp_path_factory.mktemp("geometry")
    data = prepared_folder(place / "data")
    for name, flags in ARCHS.items():
        model = make_checkpoint(place / f"{name}.pt", data, *flags)
    encode = partial(model.encoder.dictionary.encode_line, add_if_not_exist=False)
    sides = {"en": sentences(20, 1), "de": sentences(20, 2)}
    rows = {lang: [encode(" ".join(line)) for line in lines] for lang, lines in sides.items()}
    binarize(data, "valid", rows)
    return place


def load(place, data):
    """The model, and what it is made of."""
    contents = read(place, data=data)
    return build_model(contents), contents


def lengths(count, seed):
    """The tokens of the sentences drawn with a seed, whose tokens are characters."""
    return [len(line.replace(" ", "")) for line in sentences(count, seed)]


def words_of(made, name, *extra):
    """Few sentences, so that all their tokens are one sample."""
    words = ["geometry", "--checkpoint", made / f"{name}.pt", "--data", made / "data"]
    return [str(word) for word in (*words, "--sentences", "5", *extra)]


@pytest.mark.parametrize("name", ARCHS)
def test_table_covers_every_layer_of_both_sides(made, name, tmp_path, capsys):
    out = tmp_path / "figures.json"
    assert main(words_of(made, name, "--out", out)) == 0
    shown = capsys.readouterr().out
    figures = json.loads(out.read_text())
    layers = figures["layers"]
    numbers = [(layer["side"], layer["number"]) for layer in layers]
    assert numbers == [*(("encoder", i) for i in range(3)), *(("decoder", i) for i in range(2))]
    assert all(layer["radius"] > 0 and 0 <= layer["delta"]["mean"] <= 1 for layer in layers)
    assert figures["verdict"] in shown
    assert shown.count("\n| encoder ") == 3
    for side in ("encoder", "decoder"):
        says_none = f"The {side} has no curvature to use" in figures["verdict"]
        assert says_none == (name in ("twin", "prenorm"))
        assert says_none == all(
            layer["flat_stress"]["mean"] < 1e-9 for layer in layers if layer["side"] == side
        )


def test_states_match_those_of_a_forward_pass(made):
    loaded = load(made / "hybonet.pt", made / "data")
    seen = {"encoder": [], "decoder": []}
    for name, states in seen.items():
        side = getattr(loaded[0], name)
        for part in (side.embed_positions, *(layer.feed_forward for layer in side.layers)):
            part.register_forward_hook(lambda *given, states=states: states.append(given[-1]))
    (encoder, decoder) = both_sides(*loaded, made / "data", subset="valid", sentences=1)
    for side in (encoder, decoder):
        # each side runs once
        assert len(seen[side.side]) == len(side.states)
        states = torch.stack(seen[side.side])[:, 0]
        # the end of the source, and what starts the target, are left out
        states = states[:, :-1] if side is encoder else states[:, 1:]
        torch.testing.assert_close(side.states, states)
        assert set(side.spaces) == {Space("lorentz", 1.0)}


def test_a_reverse_direction_model_reads_the_other_side_of_the_files(made, tmp_path):
    data = made / "data"
    make_checkpoint(tmp_path / "reverse.pt", data, "euclidean_tiny", "-s", "de", "-t", "en")
    loaded = load(tmp_path / "reverse.pt", data)
    found = both_sides(*loaded, data, subset="valid", sentences=3)
    # this encoder reads German, which was drawn with the second seed
    assert [side.states.size(1) for side in found] == [sum(lengths(3, seed)) for seed in (2, 1)]


def test_the_longest_pair_of_a_batch_is_neither_cut_nor_padded(made):
    loaded = load(made / "twin.pt", made / "data")
    together = both_sides(*loaded, made / "data", subset="valid", sentences=7)
    for whole, seed in zip(together, (1, 2), strict=True):
        places = [place for length in lengths(7, seed) for place in range(length)]
        assert whole.states.size(1) == len(places)
        # a target starts with the end of a sentence
        first = 0 if whole.side == "encoder" else 1
        assert whole.position.tolist() == [place + first for place in places]
    alone = both_sides(*loaded, made / "data", subset="valid", sentences=1)
    for whole, one in zip(together, alone, strict=True):
        torch.testing.assert_close(whole.states[:, : one.states.size(1)], one.states)
        assert torch.equal(whole.position[: len(one.position)], one.position)


def layer(number, stress, kind="lorentz"):
    radius_and_ranks = 3.0, 1.0, math.nan, math.nan, math.nan
    stresses = (Estimate(mean, math.nan) for mean in (stress, 0.2, 0.2))
    return Layer("encoder", number, Space(kind), *radius_and_ranks, *stresses)


@pytest.mark.parametrize(
    ("layers", "said"),
    [
        ([layer(0, 0.3), layer(1, 0.002), layer(2, 0.009)], "encoder does not use the curvature: "),
        (
            [layer(1, 0.006), layer(2, 0.031)],
            "hardly uses the curvature: the best flat embedding of the same dimension misses "
            "distances by 0.6 to 3.1 %.",
        ),
        ([layer(1, 0.01), layer(2, 0.26)], "uses the curvature in 1 of 2 layers: the best flat"),
        ([layer(0, 0.3)], "uses the curvature in 1 of 1 layers"),
        ([layer(1, 0.0, kind="euclidean")], "has no curvature"),
        ([layer(1, math.nan), layer(2, math.nan)], "does not show whether"),
    ],
)
def test_summary_describes_each_side_in_one_sentence(layers, said):
    assert said in verdict(layers)


def test_a_model_folder_needs_data_with_its_own_dictionaries(made, tmp_path, capsys):
    folder.write(read(made / "hybonet.pt", data=made / "data"), tmp_path / "model", card="")
    words = ["geometry", "--checkpoint", str(tmp_path / "model"), "--data"]
    assert main([*words, str(made / "data"), "--sentences", "1"]) == 0
    # without fairseq, which only checkpoints need
    command = ["probe", *words, made / "data", "--sentences", 1]
    python(MAIN, *command, without=["fairseq"])
    shutil.copytree(made / "data", tmp_path / "data")
    exchange_words(tmp_path / "data" / "data-bin" / "dict.de.txt")
    found = error_of(capsys, [*words, tmp_path / "data"])
    assert f"--data {tmp_path / 'data'}: its dictionary of de is not that of " in found
    found = error_of(capsys, [*words[:2], "tatoeba-en-de", "--data", made / "data"])
    assert f"its dictionary of en is not that of {SHIPPED / 'tatoeba-en-de'}" in found


def test_error_names_a_missing_data_set(made, capsys):
    found = error_of(capsys, words_of(made, "hybonet", "--subset", "nothing"))
    assert found.endswith("nothing.en-de.en is not there: name another set with --subset")
