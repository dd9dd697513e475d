"""``python -m probing radius``: radii are those of states, and correlations those of scipy."""

import json
import math
import re
import shutil

import numpy as np
import pytest
import torch
from scipy.stats import rankdata, spearmanr

from hyptrans.geometry import lorentz
from probing.commands.cli import main
from probing.geometry import radius
from probing.states.checkpoint import from_checkpoint, load_model
from tests.probing.commands.runs import error_of
from tests.probing.helpers.model import make_checkpoint, prepared_folder, write_lines

DEPTHS = {f"noun{i}": i % 7 + 1 for i in range(320)}
OFTEN = {noun: 1 + (37 * i) % 101 for i, noun in enumerate(DEPTHS)}
"""By no order of the depths."""


def write_wordnet(folder):
    """Chains of synsets under the root, whose last one has a noun."""
    folder.mkdir()
    data, index = ["00000001 03 n 01 entity 0 000 | root"], ["entity n 1 0 1 0 00000001"]
    for noun, depth in DEPTHS.items():
        above = "00000001"
        for level in range(1, depth + 1):
            place, word = f"{len(data) + 1:08}", noun if level == depth else "other"
            data.append(f"{place} 03 n 01 {word} 0 001 @ {above} n 0000 | of {depth}")
            above = place
        index.append(f"{noun} n 1 1 @ 1 1 {above}")
    write_lines(folder / "data.noun", data)
    write_lines(folder / "index.noun", index)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A WordNet, a data folder of whole words, checkpoints and texts."""
    folder = tmp_path_factory.mktemp("radius")
    write_wordnet(folder / "wordnet")
    data_bin = folder / "data" / "data-bin"
    data_bin.mkdir(parents=True)
    for language in ("en", "de"):
        write_lines(data_bin / f"dict.{language}.txt", [f"{n} {OFTEN[n]}" for n in DEPTHS])
    (data_bin / "train.en-de.en.idx").touch()
    manifest = {
        "command": ["data-prep/prepare_text.py", "--raw-text", "--bpe", "none"],
        "languages": ["en", "de"],
        "inputs": {},
        "outputs": {},
        "steps": [],
    }
    (folder / "data" / "manifest.json").write_text(json.dumps(manifest))
    for arch in ("euclidean_tiny", "hybonet_tiny", "sphere_tiny"):
        make_checkpoint(folder / f"{arch}.pt", folder / "data", arch)
    nouns = list(DEPTHS)
    lines = [" ".join(nouns[i : i + 8]) for i in range(0, 320, 5)]
    write_lines(folder / "text", lines)
    write_lines(folder / "one", nouns[:1])
    return folder


def words_of(made, arch, *extra):
    words = ["radius", "--checkpoint", made / f"{arch}.pt", "--data", made / "data"]
    words += ["--wordnet", made / "wordnet", "--text", made / "text", *extra]
    return [str(word) for word in words]


def figures_of(made, tmp_path, arch, *extra):
    assert main(words_of(made, arch, "--out", tmp_path / "figures.json", *extra)) == 0
    return json.loads((tmp_path / "figures.json").read_text())


@pytest.fixture
def planted(made):
    """A checkpoint with embeddings whose norms are the depths of their nouns."""
    state = torch.load(made / "euclidean_tiny.pt", weights_only=False)
    table = state["model"]["encoder.embed_tokens.weight"]
    table[-len(DEPTHS) :] *= (
        torch.tensor([*DEPTHS.values()])[:, None] / table[-len(DEPTHS) :].norm(dim=-1)[:, None]
    )
    torch.save(state, made / "planted.pt")
    return made


def test_norms_that_are_depths_go_with_them(planted, tmp_path, capsys):
    found = figures_of(planted, tmp_path, "planted")
    assert (found["nouns"], found["sentences"], len(found["layers"])) == (320, 64, 4)
    row = found["layers"][0]
    assert (row["name"], row["radius"]) == ("embedding", pytest.approx(np.mean([*DEPTHS.values()])))
    # rounding parts norms of one depth, and ranks of theirs
    assert row["with_depth"]["value"] > 0.98
    assert row["given_frequency"]["value"] > 0.98
    assert row["with_depth"]["low"] > 0.95
    noise = spearmanr([*DEPTHS.values()], [*OFTEN.values()]).statistic
    assert row["with_frequency"]["value"] == pytest.approx(noise, abs=0.03)
    shown = capsys.readouterr().out
    assert "| embedding | norm | " in shown
    assert "320 nouns of one token, 64 lines" in shown


def test_frequencies_are_counted_in_the_text_that_is_named(planted, tmp_path):
    lines = [noun for noun, depth in DEPTHS.items() for _ in range(9 - depth)]
    text = write_lines(tmp_path / "counts", lines)
    (row, *_) = figures_of(planted, tmp_path, "planted", "--counts", text)["layers"]
    assert row["with_frequency"]["value"] < -0.98


def test_radii_are_distances_of_states_from_the_origin(made, tmp_path, capsys):
    found = figures_of(made, tmp_path, "hybonet_tiny")["layers"]
    encoder = load_model(made / "hybonet_tiny.pt", made / "data").model.encoder
    tokens = torch.tensor([encoder.dictionary.index(noun) for noun in DEPTHS])
    points = encoder.embed_tokens(tokens).double()
    distance = lorentz.distance(points, lorentz.origin(points.size(-1)).double())
    assert found[0]["radius"] == pytest.approx(float(distance.mean()), rel=1e-5)
    value = spearmanr(distance, [*DEPTHS.values()]).statistic
    assert found[0]["with_depth"]["value"] == pytest.approx(value, abs=1e-6)
    assert "| embedding | distance | " in capsys.readouterr().out


def test_of_one_radius_nothing_is_told(made, tmp_path, capsys):
    found = figures_of(made, tmp_path, "sphere_tiny")["layers"]
    assert [layer["with_depth"] for layer in found[1:]] == [None] * 3
    assert capsys.readouterr().out.count("| all radii are equal |  |  |") >= 3


def test_a_radius_is_the_mean_over_where_a_word_stands_alone(tmp_path):
    data = prepared_folder(tmp_path / "data")
    make_checkpoint(tmp_path / "a.pt", data, "euclidean_tiny")
    encoder = from_checkpoint(tmp_path / "a.pt", data=data)
    words = radius.one_token(encoder, ["dog", "cat", "unknown", "sees"])
    assert "dog" in words
    assert "unknown" not in words
    # no part of another word, and none at its end
    lines = ["the dog sees the cat.", "dogs", "dog's go", "dog-cat", "a catdog", "a dog"]
    found, counts = radius.mean_radii(encoder, lines, words, 64)
    assert dict(zip(words, counts.tolist(), strict=True))["dog"] == 2
    own = []
    for line in (lines[0], lines[-1]):
        tokens = torch.tensor([[token for token, _ in encoder.tokenize(line)]])
        at = tokens[0].tolist().index(words["dog"])
        own.append(encoder.states(tokens, torch.tensor([tokens.size(1)]))[:, 0, at].norm(dim=-1))
    place = list(words).index("dog")
    torch.testing.assert_close(found[:, place].float(), torch.stack(own).mean(0))


def test_correlations_are_those_of_scipy_and_of_residuals(rng):
    radii, often = torch.randn(2, 400, generator=rng).numpy().round(1)
    depths = (radii + often + torch.randn(400, generator=rng).numpy()).round()
    ranks = [radius.centered_ranks(values) for values in (radii, depths, often, np.ones(400))]
    found = radius.correlations(*ranks[:3])
    assert found[:2] == pytest.approx(
        [spearmanr(radii, other).statistic for other in (depths, often)]
    )
    # of what a straight line of the ranks of frequency leaves of both
    x, y, z = map(rankdata, (radii, depths, often))
    left = [values - np.polyval(np.polyfit(z, values, 1), z) for values in (x, y)]
    assert found[2] == pytest.approx(np.corrcoef(*left)[0, 1])
    assert math.isnan(radius.correlations(*ranks[:2], ranks[3])[2])


def test_intervals_are_of_the_seed_and_hold_the_value(made, tmp_path):
    one, same, other = (
        figures_of(made, tmp_path, "euclidean_tiny", "--seed", seed)["layers"][0]["with_depth"]
        for seed in ("1", "1", "2")
    )
    assert one == same != other
    assert one["low"] < one["value"] == other["value"] < one["high"]
    # about twice the standard error of 320 independent pairs on either side
    assert one["high"] - one["low"] == pytest.approx(4 / math.sqrt(320), rel=0.15)


def test_what_is_wrong_is_named(made, tmp_path, capsys):
    found = error_of(capsys, words_of(made, "euclidean_tiny", "--sentences", "2"))
    assert found.startswith("error: 13 nouns of WordNet are one token and stand in 2 lines of ")
    assert found.endswith("300 are needed: raise --sentences, or name more text")
    text = write_lines(tmp_path / "counts", ["no word of these"])
    found = error_of(capsys, words_of(made, "euclidean_tiny", "--counts", text))
    assert found == f"error: {text} has all nouns equally often: name another text with --counts"
    flat = tmp_path / "flat"
    shutil.copytree(made / "wordnet", flat)
    deep = (flat / "data.noun").read_text()
    (flat / "data.noun").write_text(re.sub(r"001 @ \d{8}", "001 @ 00000001", deep))
    found = error_of(capsys, words_of(made, "euclidean_tiny", "--wordnet", flat))
    assert found == f"error: --wordnet {flat} has all of these nouns at one depth"
    found = error_of(capsys, words_of(made, "euclidean_tiny", "--wordnet", tmp_path))
    assert found.startswith(f"error: {tmp_path}/index.noun does not exist: name the folder ")
