"""States of words: pooling in every space, and files of them."""

import gzip

import geoopt
import mpmath
import pytest
import torch

from hyptrans.geometry import lorentz, poincare
from hyptrans.geometry.space import Space
from hyptrans.inference.load import read
from hyptrans.support.errors import UserError
from hyptrans.support.files import sha256
from probing.states.extract import extract
from probing.states.file import States, about
from probing.states.model import ModelEncoder
from probing.states.pooling import pool
from probing.text.pieces import align, surface
from probing.text.trees import read_conllu
from tests.probing.helpers.model import make_checkpoint, prepared_folder, sentences
from tests.probing.helpers.trees import conllu


def load(path, data):
    return ModelEncoder(read(path, data=data), path, random=False, seed=1)


def extract_file(path, trees, out, data, **options):
    """States of a checkpoint, as a run makes them."""
    return extract(load(path, data), read_conllu(trees), out, trees=trees, **options)


PIECES = torch.tensor([0, 1, 2, 2, 3, 4, 5, 6])
WORDS = torch.tensor([0, 0, 0, 1, 2, 3, 3, 3])
MEMBERS = [[0, 1, 2], [2], [3], [4, 5, 6]]


def points(space, rng, spread=1.0):
    vectors = torch.randn(7, 6, generator=rng) * spread
    if space.kind == "lorentz":
        return lorentz.exp_origin(vectors, c=space.c)
    if space.kind == "poincare":
        return poincare.exp_origin(vectors / 2, c=space.c)
    return vectors


def centroid(x, c):
    """Sum over its own Lorentz norm, in fifty digits."""
    with mpmath.workdps(50):
        space = [mpmath.matrix(row) for row in x[:, 1:].double().tolist()]
        time = sum(mpmath.sqrt(1 / mpmath.mpf(c) + mpmath.norm(row) ** 2) for row in space)
        total = sum(space[1:], space[0])
        size = mpmath.sqrt(c * (time**2 - mpmath.norm(total) ** 2))
        return torch.tensor([float(one / size) for one in (time, *total)], dtype=torch.float64)


def direct(x, space):
    """The state of a word with such pieces: by NumPy, by geoopt, or their mean."""
    if space.kind == "lorentz":
        return centroid(x, space.c)
    if space.kind == "poincare":
        return geoopt.PoincareBall(c=space.c).weighted_midpoint(x.double())
    return x.double().mean(0)


@pytest.mark.parametrize(
    ("space", "spread", "close"),
    [
        *((Space("lorentz", c), s, 1e-9) for c in (0.25, 1.0, 3.0) for s in (0.1, 1.0)),
        *((Space("lorentz", c), 3.0, None) for c in (0.25, 1.0, 3.0)),
        *((Space("poincare", c), 1.0, 1e-5) for c in (0.25, 1.0, 3.0)),
        (Space("euclidean"), 1.0, 1e-12),
    ],
)
def test_words_pool_into_centroids_gyromidpoints_or_means(space, spread, close, rng):
    x = points(space, rng, spread)
    got = pool(x[None], PIECES, WORDS, 4, [space])[0]
    if close is None:
        # the square of a sum's Lorentz norm is 1 / cosh(r)^2 of that of its time, where float64
        # rounds: at radius 12 that is 2e-6 of the norm
        close = 4 * torch.finfo(torch.float64).eps * space.c * x[:, 0].double().max().item() ** 2
    for word, own in zip(got, MEMBERS, strict=True):
        torch.testing.assert_close(word, direct(x[own], space), atol=close / 10, rtol=close)
    if space.kind == "lorentz":
        assert lorentz.violation(got, c=space.c).max() < 1e-12


def test_each_layer_is_pooled_in_its_own_space(rng):
    spaces = [Space("lorentz", 1.0), Space("lorentz", 0.5), Space("euclidean")]
    x = torch.stack([points(spaces[0], rng), points(spaces[1], rng), torch.randn(7, 7)])
    together = pool(x, PIECES, WORDS, 4, spaces)
    for layer, space in enumerate(spaces):
        torch.testing.assert_close(
            together[layer], pool(x[layer : layer + 1], PIECES, WORDS, 4, [space])[0]
        )


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return prepared_folder(tmp_path_factory.mktemp("data") / "mine")


@pytest.fixture
def trees(tmp_path):
    path = tmp_path / "trees.conllu.gz"
    path.write_bytes(gzip.compress(conllu(sentences(37, seed=5)).encode()))
    return path


@pytest.mark.parametrize("arch", ["hybonet", "hvt", "transformer"])
def test_batching_does_not_change_states(data, trees, tmp_path, arch):
    make_checkpoint(tmp_path / "a.pt", data, arch)
    out = tmp_path / "deep" / "states.npy"
    states = extract_file(tmp_path / "a.pt", trees, out, data, batch_tokens=64)
    encoder, all_trees = load(tmp_path / "a.pt", data), read_conllu(trees)
    assert states.kept == list(range(len(all_trees)))
    assert (states.architecture, states.spaces) == (arch, encoder.spaces)
    assert states.contents.identity == sha256(tmp_path / "a.pt")
    for i, tree in enumerate(all_trees):
        text, words = surface(tree)
        numbers, spans = zip(*encoder.tokenize(text), strict=True)
        one = encoder.states(torch.tensor([numbers]), torch.tensor([len(numbers)]))[:, 0]
        got = states.sentence(i)
        assert got.shape == (3, len(tree.words), 16)
        for layer, space in enumerate(encoder.spaces):
            for word, own in enumerate(align(spans, words)):
                want = direct(one[layer, own], space).float()
                torch.testing.assert_close(got[layer, word], want, atol=2e-5, rtol=2e-5)
    together, lengths = states.batch([5, 0])
    assert lengths.tolist() == [len(all_trees[5]), len(all_trees[0])]
    assert torch.equal(together[:, 1, : lengths[1]], states.sentence(0))
    assert not together[:, 0, lengths[0] :].any()


def test_extraction_skips_and_lists_long_and_unalignable_sentences(data, tmp_path):
    make_checkpoint(tmp_path / "a.pt", data, "hybonet", "--max-source-positions", "30")
    trees = tmp_path / "t.conllu"
    lines = ["the dog", "the dog " * 20, "a \x07 cat", "cat sees"]
    trees.write_text(conllu(lines), encoding="utf-8")
    states = extract_file(tmp_path / "a.pt", trees, tmp_path / "s.npy", data)
    assert states.kept == [0, 3]
    left_out = States(tmp_path / "s.npy").contents.left_out
    assert [(left.index, left.id) for left in left_out] == [(1, "s2"), (2, "s3")]
    assert "the model takes 30" in left_out[0].reason
    assert "word 2 has no piece" in left_out[1].reason


@pytest.mark.parametrize("arch", ["hybonet", "transformer"])
def test_extraction_keeps_a_sentence_of_the_maximum_length(data, tmp_path, arch):
    trees = tmp_path / "t.conllu"
    trees.write_text(conllu(["the dog sees a cat"]), encoding="utf-8")
    make_checkpoint(tmp_path / "a.pt", data, arch)
    longest = len(load(tmp_path / "a.pt", data).tokenize("the dog sees a cat"))
    for size in (longest, longest - 1):
        path = tmp_path / f"{size}.pt"
        make_checkpoint(path, data, arch, "--max-source-positions", str(size))
    assert extract_file(tmp_path / f"{longest}.pt", trees, tmp_path / "s.npy", data).kept == [0]
    with pytest.raises(UserError, match=f"no sentence .* s1, {longest} tokens"):
        extract_file(tmp_path / f"{longest - 1}.pt", trees, tmp_path / "none.npy", data)
    assert not list(tmp_path.glob("none*"))


def test_states_that_are_not_finite_are_refused(data, trees, tmp_path):
    make_checkpoint(tmp_path / "a.pt", data, "transformer")
    state = torch.load(tmp_path / "a.pt", weights_only=False)
    state["model"]["encoder.layers.1.fc1.weight"].fill_(1e38)
    torch.save(state, tmp_path / "a.pt")
    with pytest.raises(UserError, match=r"a\.pt: its states are not finite"):
        extract_file(tmp_path / "a.pt", trees, tmp_path / "s.npy", data)
    assert not list(tmp_path.glob("s*"))


def test_extraction_writes_state_files_atomically(data, trees, tmp_path, monkeypatch):
    make_checkpoint(tmp_path / "a.pt", data, "han")
    out, made = tmp_path / "s.npy", load(tmp_path / "a.pt", data)
    monkeypatch.setattr(made, "states", lambda *given: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        extract(made, read_conllu(trees), out, trees=trees)
    assert not out.exists()
    assert not about(out).exists()
