"""Training of probes: the losses of the spec, planted trees found again, layers on their own."""

import dataclasses
import math

import pytest
import torch

from hyptrans.geometry.space import Space
from hyptrans.support.errors import UserError
from probing.probes import baselines
from probing.probes.corpus import LARGEST_PAIRS, Corpus
from probing.probes.evaluation import best_layer, evaluate
from probing.probes.probe import PROBES, EuclideanProbe
from probing.probes.training import depth_losses, distance_losses, train
from probing.settings import KINDS, Settings
from tests.probing.helpers.states import MemoryStates, planted
from tests.probing.helpers.trees import random_heads, sentence_of

QUICK = Settings(steps=20, evaluate_every=10, rank=8)


def noise(count, layers=2, width=6, seed=0, sizes=(3, 9)):
    """Return a corpus of random trees and unrelated states."""
    rng = torch.Generator().manual_seed(seed)
    lengths = torch.randint(*sizes, (count,), generator=rng).tolist()
    states = [torch.randn(layers, n, width, generator=rng) for n in lengths]
    sentences = [sentence_of(random_heads(n, seed=i)) for i, n in enumerate(lengths)]
    return Corpus(MemoryStates(states), sentences)


@pytest.mark.parametrize("kind", KINDS)
def test_probes_find_planted_trees_but_not_shuffled_ones(kind):
    sets = [planted(count, kind, seed=seed) for seed, count in enumerate((1200, 100, 200), 1)]
    settings = Settings(probe=kind, steps=500, evaluate_every=100, lr=1e-2, rank=16)
    trained = train(*sets[:2], settings)
    real, shuffled = evaluate(sets[2], trained.distance, trained.depth).metrics()
    (chain,) = baselines.score(baselines.CHAIN, sets[2].sentences).metrics()
    assert real["uuas"] > 0.95
    assert real["root"] > 0.95
    assert real["dspr"] > 0.9
    assert shuffled["uuas"] < chain["uuas"] + 0.05
    assert shuffled["root"] < 0.3


def test_losses_match_the_specified_means():
    batch = noise(4, layers=3).batch([0, 1, 2, 3])
    n, rng = batch.depths.size(1), torch.Generator().manual_seed(5)
    distances, depths = (torch.rand(3, 4, *size, generator=rng) for size in ((n, n), (n,)))
    for layer in range(3):
        of_distances, of_depths = [], []
        for row, m in enumerate(batch.lengths.tolist()):
            wrong = (distances[layer, row, :m, :m] - batch.distances[row, :m, :m]).abs()
            of_distances.append(wrong.sum() / m**2)
            of_depths.append((depths[layer, row, :m] - batch.depths[row, :m]).abs().sum() / m)
        expected = torch.stack(of_distances).mean()
        torch.testing.assert_close(distance_losses(distances, batch)[layer], expected)
        expected = torch.stack(of_depths).mean()
        torch.testing.assert_close(depth_losses(depths, batch)[layer], expected)


def test_each_layer_trains_independently_of_the_others():
    first, second = noise(60, seed=1), noise(60, seed=1)
    for states in second.states.states:
        states[1] = 3 * states[1].flip(0)
    settings = dataclasses.replace(QUICK, lr=1e-2)
    one, other = train(first, first, settings), train(second, second, settings)
    for task in ("distance", "depth"):
        assert one.courses[task][0].losses == pytest.approx(other.courses[task][0].losses)
        assert one.courses[task][1].losses != pytest.approx(other.courses[task][1].losses)
        for course in one.courses[task]:
            assert course.losses[-1] < course.losses[0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("space", KINDS)
def test_training_step_keeps_every_tensor_on_one_device(kind, space):
    # tensors of "meta" go with no others, as those of a GPU
    batch, probe = noise(8).batch(range(8)).to("meta"), PROBES[kind](6, 4, [Space(space)] * 2)
    probe.to("meta")
    losses = distance_losses(probe.distances(batch.states), batch)
    losses = losses + depth_losses(probe.depths(batch.states), batch)
    losses.sum().backward()
    assert {p.grad.device.type for p in probe.parameters()} == {losses.device.type} == {"meta"}


@pytest.mark.gpu
@pytest.mark.parametrize("kind", KINDS)
def test_probes_learn_on_a_gpu_as_on_the_cpu(kind):
    settings = dataclasses.replace(QUICK, probe=kind)
    cpu, gpu = (train(noise(64), noise(32, seed=1), settings, device=d) for d in ("cpu", "cuda"))
    assert gpu.distance.parameters_of(0)[0].device.type == "cpu"
    for task in ("distance", "depth"):
        for one, other in zip(cpu.courses[task], gpu.courses[task], strict=True):
            assert other.losses == pytest.approx(one.losses, rel=1e-3)


def test_training_keeps_the_best_weights_on_the_development_set():
    train_set, dev_set = noise(40, seed=1), noise(40, seed=2)
    # at this rate the loss jumps up and down
    wild = dataclasses.replace(QUICK, steps=60, evaluate_every=2, lr=0.5, patience=100)
    trained = train(train_set, dev_set, wild)
    assert any(c.best_step < c.steps for c in trained.courses["distance"])
    batch = dev_set.batch(range(40))
    with torch.no_grad():
        found = {
            "distance": distance_losses(trained.distance.distances(batch.states), batch),
            "depth": depth_losses(trained.depth.depths(batch.states), batch),
        }
    for task, losses in found.items():
        expected = [course.best_loss for course in trained.courses[task]]
        assert losses.tolist() == pytest.approx(expected, rel=1e-4)
        assert expected == [min(course.losses) for course in trained.courses[task]]


def test_each_layer_stops_early_without_improvement():
    corpus = noise(40)
    impatient = dataclasses.replace(QUICK, steps=4000, evaluate_every=2, lr=1.0, patience=2)
    trained = train(corpus, corpus, impatient)
    ends = {course.steps for courses in trained.courses.values() for course in courses}
    assert max(ends) < 4000
    assert len(ends) > 1
    # two looks after the best one
    assert all(c.steps == c.best_step + 2 * 2 for of in trained.courses.values() for c in of)


def test_training_refuses_one_word_sentences_alone():
    short = noise(8, sizes=(1, 2))
    with pytest.raises(UserError, match="the states has only sentences of one word"):
        train(short, noise(8), QUICK)
    # a longer one is enough
    assert train(noise(8, sizes=(1, 3)), noise(8), QUICK).courses


def test_training_reports_losses_that_are_never_finite():
    corpus = noise(5)
    for states in corpus.states.states:
        states[1] = float("nan")
    with pytest.raises(UserError, match=r"probe of layer 1 never .* lower --lr"):
        train(corpus, corpus, QUICK)


def test_each_epoch_batches_every_sentence_once_with_similar_lengths():
    corpus, seen, spread = noise(500, sizes=(1, 30)), [], []
    batches = corpus.shuffled(16, torch.Generator().manual_seed(0))
    while len(seen) < 500:
        batch = next(batches)
        assert len(batch) <= 16
        seen += batch
        lengths = [corpus.lengths[i] for i in batch]
        spread.append(max(lengths) - min(lengths))
    assert sorted(seen) == list(range(500))
    assert sum(spread) / len(spread) < 3
    assert sorted(i for batch in corpus.in_order(7) for i in batch) == list(range(500))
    # long sentences form small batches
    corpus = Corpus(MemoryStates([torch.zeros(1, 600, 1)] * 5), [sentence_of(range(-1, 599))] * 5)
    assert [len(batch) for batch in corpus.in_order(32)] == [LARGEST_PAIRS // 600**2] * 2 + [1]


def test_training_accepts_states_of_a_subset_of_sentences():
    whole = noise(6)
    states = MemoryStates(whole.states.states[::2], kept=[0, 2, 4])
    some = Corpus(states, whole.sentences, only={2, 3, 4})
    assert some.places == [2, 4]
    batch = some.batch([1])
    torch.testing.assert_close(batch.states[:, 0], whole.states.states[4])
    assert batch.sentences == [whole.sentences[4]]


def test_sentence_scores_follow_the_order_of_sentences():
    corpus = noise(40, layers=1, sizes=(4, 9))
    probe = EuclideanProbe(corpus.states.width, 4, corpus.states.spaces)
    scores = evaluate(corpus, probe, probe)
    assert scores.lengths.tolist() == corpus.lengths
    for i in (0, 7, 39):
        one = Corpus(corpus.states, corpus.sentences, only={i})
        (alone,) = evaluate(one, probe, probe).correct[0]
        assert scores.correct[0, i] == alone


def test_best_layer_is_the_first_maximum_and_never_nan():
    nan = float("nan")
    layers = [
        {"uuas": nan, "dspr": 0.1, "root": 0.9, "nspr": -0.5},
        {"uuas": 0.4, "dspr": 0.2, "root": 0.1, "nspr": nan},
        {"uuas": 0.4, "dspr": 0.9, "root": 0.2, "nspr": -0.6},
    ]
    assert best_layer(layers, "distance") == 1
    assert best_layer(layers, "depth") == 0


def test_baselines_score_perfectly_on_their_own_trees():
    sentences = [sentence_of(range(-1, n - 1)) for n in range(5, 12)]
    (found,) = baselines.score(baselines.RIGHT_BRANCHING, sentences).metrics()
    assert found == pytest.approx({"uuas": 1.0, "dspr": 1.0, "root": 1.0, "nspr": 1.0})
    (chain,) = baselines.score(baselines.CHAIN, sentences).metrics()
    undefined = {"root": math.nan, "nspr": math.nan}
    assert chain == pytest.approx({"uuas": 1.0, "dspr": 1.0} | undefined, nan_ok=True)
