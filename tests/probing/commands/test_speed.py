"""Time that training and scoring take on a real treebank, with states of 7 layers of 64 numbers."""

import time

import pytest
import torch

from hyptrans.geometry import lorentz
from hyptrans.geometry.space import Space
from probing.probes.corpus import Corpus
from probing.probes.evaluation import evaluate
from probing.probes.training import Settings, train
from probing.text.trees import read_conllu
from tests.probing.helpers.model import real_data
from tests.probing.helpers.states import MemoryStates


def corpus_of(part):
    rng = torch.Generator().manual_seed(0)
    sentences = read_conllu(real_data() / f"en_ewt-ud-{part}.conllu.gz")
    states = [lorentz.lift(torch.randn(7, len(s), 63, generator=rng)) for s in sentences]
    return Corpus(MemoryStates(states, [Space("lorentz")] * 7), sentences)


@pytest.mark.slow
@pytest.mark.parametrize("probe", ["lorentz", "poincare", "euclidean"])
def test_two_thousand_steps_of_all_layers_and_both_tasks_take_less_than_ten_minutes(probe):
    train_set, dev_set = corpus_of("train"), corpus_of("dev")
    settings = Settings(probe=probe)
    assert len(train_set) == 12544
    assert (settings.steps, settings.batch_size, settings.rank) == (2000, 32, 64)
    tenth = Settings(probe=probe, steps=settings.steps // 10)
    start = time.perf_counter()
    trained = train(train_set, dev_set, tenth)
    assert (time.perf_counter() - start) * 10 < 600
    start = time.perf_counter()
    evaluate(corpus_of("test"), trained.distance, trained.depth)
    assert time.perf_counter() - start < 60
