import gzip
import itertools

import geoopt
import mpmath
import pytest
import torch

from hyptrans.geometry import lorentz, poincare
from hyptrans.geometry.space import Space
from hyptrans.inference.load import SHIPPED, read
from hyptrans.support.errors import UserError
from hyptrans.support.files import sha256
from probing.states import extract as extraction
from probing.states.file import States
from probing.states.model import ModelEncoder, is_model_folder
from probing.states.pooling import pool
from probing.text.pieces import align, surface
from probing.text.trees import read_conllu
from tests.inference.conftest import export
from tests.probing.commands.runs import subjects
from tests.probing.helpers.model import make_checkpoint, prepared_folder, sentences, without_dropout
from tests.probing.helpers.trees import conllu

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
    out = without_dropout(model).encoder(tokens, lengths, return_all_hiddens=True)
    assert [space.kind for space in encoder.spaces] == [SPACES.get(path.stem, "euclidean")] * 3
    assert path.stem != "hvt" or {space.c for space in encoder.spaces} == {0.5}
    states, real = encoder.states(tokens, lengths), tokens.ne(encoder.pad)
    assert states.shape == (3, 3, 10, 16)
    for got, want in zip(states[:-1], out["encoder_states"], strict=False):
        torch.testing.assert_close(got[real], want.transpose(0, 1)[real], atol=2e-5, rtol=2e-5)
    last = out["encoder_out"][0].transpose(0, 1)
    torch.testing.assert_close(states[-1][real], last[real], atol=2e-5, rtol=2e-5)


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
    """The state of a word with such pieces: by mpmath, by geoopt, or their mean."""
    if space.kind == "lorentz":
        return centroid(x, space.c)
    if space.kind == "poincare":
        return geoopt.PoincareBall(c=space.c).weighted_midpoint(x.double())
    return x.double().mean(0)


@pytest.mark.parametrize(
    ("space", "spread", "close"),
    [
        *((Space("lorentz", c), s, 1e-9) for c in (0.25, 3.0) for s in (0.1, 1.0)),
        *((Space("lorentz", c), 3.0, None) for c in (0.25, 3.0)),
        *((Space("poincare", c), 1.0, 1e-5) for c in (0.25, 3.0)),
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
        alone = pool(x[layer : layer + 1], PIECES, WORDS, 4, [space])[0]
        torch.testing.assert_close(together[layer], alone)


@pytest.fixture
def encoder_of(data, tmp_path):
    """Make a checkpoint and load its encoder."""

    def encoder_of(arch, *flags):
        make_checkpoint(tmp_path / "a.pt", data, arch, *flags)
        return load(tmp_path / "a.pt", data)

    return encoder_of


@pytest.fixture
def extract(tmp_path):
    """Write sentences as trees and extract their states, as a run does."""

    def extract(encoder, lines):
        trees = tmp_path / "trees.conllu.gz"
        trees.write_bytes(gzip.compress(conllu(lines).encode()))
        parsed = read_conllu(trees)
        return extraction.extract(encoder, parsed, tmp_path / "deep" / "s.npy", trees=trees), parsed

    return extract


@pytest.mark.parametrize("arch", ["hybonet", "hvt", "transformer"])
def test_batching_does_not_change_states(encoder_of, extract, tmp_path, monkeypatch, arch):
    monkeypatch.setattr(extraction, "BATCH_TOKENS", 64)
    encoder = encoder_of(arch)
    states, all_trees = extract(encoder, sentences(37, seed=5))
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


def test_extraction_skips_and_lists_long_and_unalignable_sentences(encoder_of, extract):
    encoder = encoder_of("hybonet", "--max-source-positions", "30")
    states, _ = extract(encoder, ["the dog", "the dog " * 20, "a \x07 cat", "cat sees"])
    assert states.kept == [0, 3]
    left_out = States(states.path).contents.left_out
    assert [(left["index"], left["id"]) for left in left_out] == [(1, "s2"), (2, "s3")]
    assert "the model takes 30" in left_out[0]["reason"]
    assert "word 2 has no piece" in left_out[1]["reason"]


@pytest.mark.parametrize("arch", ["hybonet", "transformer"])
def test_extraction_keeps_a_sentence_of_the_maximum_length(encoder_of, extract, tmp_path, arch):
    line = "the dog sees a cat"
    longest = len(encoder_of(arch).tokenize(line))
    with pytest.raises(UserError, match=f"no sentence .* s1, {longest} tokens"):
        extract(encoder_of(arch, "--max-source-positions", str(longest - 1)), [line])
    assert not list(tmp_path.rglob("s.*"))
    assert extract(encoder_of(arch, "--max-source-positions", str(longest)), [line])[0].kept == [0]


def test_a_failing_extraction_writes_no_file(encoder_of, extract, tmp_path, monkeypatch):
    encoder = encoder_of("transformer")
    next(encoder.module.layers[1].parameters()).fill_(1e38)
    with pytest.raises(UserError, match=r"a\.pt: its states are not finite"):
        extract(encoder, ["the dog"])
    monkeypatch.setattr(encoder, "states", lambda *given: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        extract(encoder, ["the dog"])
    assert not list(tmp_path.rglob("s.*"))
