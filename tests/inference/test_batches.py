import itertools
import random

import pytest

from hyptrans.inference.batches import by_length


@pytest.mark.parametrize("step", [0, 4])
def test_batches_are_as_full_as_the_limit_allows(step):
    draw = random.Random(1)
    sizes = [draw.randint(0, 12) for _ in range(100)]
    batches = list(by_length(sizes, 30, "sentences", progress=False, step=step))
    assert sorted(i for batch in batches for i in batch) == [i for i in range(100) if sizes[i]]
    for batch in batches:
        assert len(batch) * max(sizes[i] for i in batch) <= 30
    for batch, after in itertools.pairwise(batches):
        longest = max(sizes[i] for i in batch)
        groups = {-(-size // step) for size in (longest, sizes[after[0]])} if step else {0}
        assert (len(batch) + 1) * longest > 30 or len(groups) == 2
    assert list(by_length([50, 3], 30, "sentences", progress=False)) == [[0], [1]]
