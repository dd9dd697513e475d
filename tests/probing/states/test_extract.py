import argparse
import gzip

import geoopt
import numpy as np
import pytest
import torch

from hyptrans.fairseq.states import all_states, spaces_of
from hyptrans.geometry import lorentz, poincare
from hyptrans.geometry.space import Space
from hyptrans.support.errors import UserError
from hyptrans.support.files import sha256
from probing.commands import extract as commands
from probing.commands import options
from probing.states import checkpoint, extract
from probing.states.checkpoint import from_checkpoint, load_model
from probing.states.file import States
from probing.states.pooling import pool
from probing.text.align import align, surface
from probing.text.segment import from_prepared
from probing.text.trees import read_conllu
from tests.probing.helpers.model import (
    load_dictionary,
    make_checkpoint,
    prepared_folder,
    real_trees,
    sentences,
)
from tests.probing.helpers.trees import conllu


def extract_file(path, trees, out, **options):
    """States of a checkpoint, as the command makes them."""
    size = {"batch_tokens": options.pop("batch_tokens", extract.BATCH_TOKENS)}
    made = from_checkpoint(path, **options)
    return extract.extract(made, read_conllu(trees), out, trees=trees, **size)


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
    """Sum over its own Lorentz norm, in float64 NumPy."""
    x = x.double().numpy()
    x[:, 0] = np.sqrt(1 / c + (x[:, 1:] ** 2).sum(1))
    total = x.sum(0)
    return total / np.sqrt(c * (total[0] ** 2 - (total[1:] ** 2).sum()))


def direct(x, space):
    """The state of a word with such pieces: by NumPy, by geoopt, or their mean."""
    if space.kind == "lorentz":
        return torch.from_numpy(centroid(x, space.c))
    if space.kind == "poincare":
        return geoopt.PoincareBall(c=space.c).weighted_midpoint(x.double())
    return x.double().mean(0)


@pytest.mark.parametrize(
    ("space", "spread", "close"),
    [
        *((Space("lorentz", c), s, 1e-9) for c in (0.25, 1.0, 3.0) for s in (0.1, 1.0, 3.0)),
        *((Space("poincare", c), 1.0, 1e-5) for c in (0.25, 1.0, 3.0)),
        (Space("euclidean"), 1.0, 1e-12),
    ],
)
def test_words_are_centroids_gyromidpoints_and_means(space, spread, close, rng):
    x = points(space, rng, spread)
    got = pool(x[None], PIECES, WORDS, 4, [space])[0]
    for word, own in zip(got, MEMBERS, strict=True):
        torch.testing.assert_close(word, direct(x[own], space), atol=close / 10, rtol=close)
    if space.kind == "lorentz":
        assert lorentz.violation(got, c=space.c).max() < 1e-12


@pytest.mark.parametrize("space", [Space("lorentz", 2.0), Space("poincare", 2.0)])
def test_word_of_one_piece_is_that_piece(space, rng):
    x = points(space, rng)
    got = pool(x[None], torch.arange(7), torch.arange(7), 7, [space])[0]
    torch.testing.assert_close(got.float(), x, atol=1e-5, rtol=1e-5)


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
def test_states_are_those_of_one_sentence_after_the_other(data, trees, tmp_path, arch):
    make_checkpoint(tmp_path / "a.pt", data, arch)
    out = tmp_path / "deep" / "states.safetensors"
    states = extract_file(tmp_path / "a.pt", trees, out, data=data, batch_tokens=64)
    loaded = load_model(tmp_path / "a.pt", data)
    segmenter = from_prepared(data, "en", loaded.dictionary)
    all_trees = read_conllu(trees)
    assert states.kept == list(range(len(all_trees)))
    spaces = spaces_of(loaded.model.encoder)
    assert (states.architecture, states.spaces) == (loaded.architecture, spaces)
    assert (states.contents.trees_sha256, states.contents.identity) == (
        sha256(trees),
        sha256(tmp_path / "a.pt"),
    )
    for i, tree in enumerate(all_trees):
        text, spans = surface(tree)
        pieces = segmenter(text)
        numbers = [loaded.dictionary.index(piece.text) for piece in pieces]
        tokens = torch.tensor([[*numbers, loaded.dictionary.eos()]])
        one = all_states(loaded.model.encoder, tokens)[:, 0]
        got = states.sentence(i)
        assert got.shape == (3, len(tree.words), 16)
        for layer, space in enumerate(spaces):
            for word, own in enumerate(align(pieces, spans)):
                want = direct(one[layer, own], space).float()
                torch.testing.assert_close(got[layer, word], want, atol=2e-5, rtol=2e-5)


def test_long_and_unalignable_sentences_are_left_out_and_listed(data, tmp_path):
    make_checkpoint(tmp_path / "a.pt", data, "hybonet", "--max-source-positions", "30")
    trees = tmp_path / "t.conllu"
    trees.write_text(
        conllu(["the dog", "the dog " * 20, "a \x07 cat", "cat sees"]), encoding="utf-8"
    )
    states = extract_file(tmp_path / "a.pt", trees, tmp_path / "s", data=data)
    assert states.kept == [0, 3]
    assert [(left.index, left.id) for left in states.contents.left_out] == [(1, "s2"), (2, "s3")]
    assert "the model takes 30" in states.contents.left_out[0].reason
    assert "word 2 has no piece" in states.contents.left_out[1].reason
    text = commands.summary(states)
    assert "4 words of 2 of 4 sentences, 3 layers of hybonet, width 16" in text
    assert "s2 (sentence 2)" in text


def test_the_longest_go_first_and_no_batch_is_larger_than_asked(data, trees, tmp_path, monkeypatch):
    make_checkpoint(tmp_path / "a.pt", data, "transformer")
    made = from_checkpoint(tmp_path / "a.pt", data=data)
    seen, inner = [], made.states

    def states(tokens, lengths):
        seen.append(lengths.tolist())
        return inner(tokens, lengths)

    monkeypatch.setattr(made, "states", states)
    extract.extract(made, read_conllu(trees), tmp_path / "s", trees=trees, batch_tokens=64)
    lengths = [length for batch in seen for length in batch]
    assert len(lengths) == 37
    assert lengths == sorted(lengths, reverse=True)
    assert all(len(batch) * max(batch) <= 64 for batch in seen)
    # and none smaller than it has to be
    for batch in seen[:-1]:
        assert (len(batch) + 1) * max(batch) > 64


def test_sentence_as_long_as_the_model_takes_is_kept(data, tmp_path):
    segmenter = from_prepared(data, "en", load_dictionary(data))
    longest = len(segmenter("the dog sees a cat")) + 1
    trees = tmp_path / "t.conllu"
    trees.write_text(conllu(["the dog sees a cat"]), encoding="utf-8")
    for arch in ("hybonet", "transformer"):
        flags = ["--encoder-learned-pos"] if arch == "transformer" else []
        for size, kept in ((longest, [0]), (longest - 1, None)):
            path = tmp_path / f"{arch}{size}.pt"
            make_checkpoint(path, data, arch, "--max-source-positions", str(size), *flags)
            if kept:
                states = extract_file(path, trees, tmp_path / "s", data=data)
                assert states.kept == kept
            else:
                with pytest.raises(UserError, match=f"no sentence .* s1, {longest} tokens"):
                    extract_file(path, trees, tmp_path / "none", data=data)
                assert not (tmp_path / "none").exists()


def test_states_that_are_not_finite_are_refused(data, trees, tmp_path):
    make_checkpoint(tmp_path / "a.pt", data, "transformer")
    state = torch.load(tmp_path / "a.pt", weights_only=False)
    state["model"]["encoder.layers.1.fc1.weight"].fill_(float("nan"))
    torch.save(state, tmp_path / "a.pt")
    with pytest.raises(UserError, match=r"a\.pt: its states are not finite"):
        extract_file(tmp_path / "a.pt", trees, tmp_path / "s", data=data)
    assert not list(tmp_path.glob("s*"))


def command(*words):
    parser = argparse.ArgumentParser()
    options.extract(parser)
    commands.main(parser.parse_args([str(word) for word in words]))


def test_command_writes_states_and_says_so(data, trees, tmp_path, capsys):
    make_checkpoint(tmp_path / "a.pt", data, "han")
    words = ["--checkpoint", tmp_path / "a.pt", "--trees", trees]
    command(*words, "--out", tmp_path / "one", "--data", data)
    assert "37 of 37 sentences" in capsys.readouterr().out
    # the same pieces, named apart
    model = data / "sentencepiece.model"
    named = ["--data-bin", data / "data-bin", "--sentencepiece-model", model]
    command(*words, "--out", tmp_path / "two", *named)
    command(*words, "--out", tmp_path / "three", "--data", data, "--random", "--seed", "5")
    one, two, three = (States.open(tmp_path / name) for name in ("one", "two", "three"))
    torch.testing.assert_close(one.sentence(0), two.sentence(0))
    assert not torch.allclose(one.sentence(0), three.sentence(0))
    assert (three.contents.random, three.contents.seed) == (True, 5)


def test_missing_data_is_asked_for(data, trees, tmp_path):
    make_checkpoint(tmp_path / "a.pt", data, "han")
    with pytest.raises(UserError, match="--data or --data-bin"):
        extract_file(tmp_path / "a.pt", trees, tmp_path / "s")
    with pytest.raises(UserError, match="--sentencepiece-model and --bpe-codes"):
        command(
            "--checkpoint",
            tmp_path / "a.pt",
            "--trees",
            trees,
            "--out",
            tmp_path / "s",
            "--data-bin",
            data,
        )


@pytest.mark.slow
def test_all_of_ewt_train_has_states_and_costs_little_more_than_its_tokens(tmp_path, monkeypatch):
    trees = real_trees() / "en_ewt-ud-train.conllu.gz"
    text = [" ".join(tree.words).replace("\xa0", " ") for tree in read_conllu(trees)[:3000]]
    data = prepared_folder(tmp_path / "data", text, size=2000)
    sizes = ["--encoder-layers", "6", "--encoder-embed-dim", "64", "--decoder-embed-dim", "64"]
    make_checkpoint(tmp_path / "a.pt", data, "hybonet", *sizes, "--encoder-ffn-embed-dim", "256")
    sizes, tokens = [], 0

    def watched(module, batch):
        nonlocal tokens
        tokens += int(batch.ne(module.dictionary.pad()).sum())
        sizes.append(batch.numel())
        return all_states(module, batch)

    monkeypatch.setattr(checkpoint, "all_states", watched)
    states = extract_file(tmp_path / "a.pt", trees, tmp_path / "s", data=data)
    assert (len(states), states.layers, states.width) == (12544, 7, 64)
    assert states.contents.left_out == []
    assert max(sizes) <= extract.BATCH_TOKENS
    # padding, and batches that are not full
    assert sum(sizes) < 1.05 * tokens
    assert len(sizes) < 1.1 * tokens / extract.BATCH_TOKENS
