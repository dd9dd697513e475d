import numpy as np

from hyptrans.train.batches import TokenBatches

LIMIT = 1000


def test_an_epoch_has_every_pair_once_with_little_padding():
    draw = np.random.default_rng(1)
    sources = draw.poisson(12, 5000) + 2
    sizes = np.stack([sources, np.maximum(sources + draw.integers(-4, 5, 5000), 2)], 1)
    batches = list(TokenBatches(sizes, LIMIT, seed=1))
    assert sorted(index for batch in batches for index in batch) == list(range(5000))
    places = np.array([len(batch) * sizes[batch].max(0) for batch in batches])
    assert places.max() <= LIMIT
    assert places.sum() / sizes.sum() < 1.05
