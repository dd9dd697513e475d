"""Earlier positions in tables: added to, reordered, grown and copied as lists would be."""

import pytest
import torch

from hyptrans.layers.decoding_state import FIRST_POSITIONS, Memory, State, append

HEADS, KEY_WIDTH, VALUE_WIDTH = 2, 3, 4


def position(rng, rows, length=1):
    return (
        torch.randn(rows, HEADS, length, KEY_WIDTH, generator=rng),
        torch.randn(rows, HEADS, length, VALUE_WIDTH, generator=rng),
    )


class Plain:
    """The same by concatenation and indexing."""

    def __init__(self):
        self.tensors = None

    def append(self, *new):
        old = self.tensors or [t[:, :, :0] for t in new]
        self.tensors = [torch.cat(pair, dim=2) for pair in zip(old, new, strict=True)]

    def reorder(self, order):
        self.tensors = [t[order] for t in self.tensors]


def check(past, plain):
    for ours, expected in zip(past.gather(), plain.tensors, strict=True):
        assert torch.equal(ours, expected)


@pytest.mark.parametrize("first", [1, 5])
def test_positions_come_back_as_by_concatenation(first, rng):
    state, plain, rows = State(), Plain(), 4
    tables = set()
    for step in range(3 * FIRST_POSITIONS):
        new = position(rng, rows, first if step == 0 else 1)
        past = append(state, *new)
        plain.append(*new)
        check(past, plain)
        tables.add(past.tables.keys.data_ptr())
        # hypotheses are swapped, repeated, dropped and, at one time, added
        rows = {10: 7, 30: 2}.get(step, rows)
        order = torch.randint(len(plain.tensors[0]), (rows,), generator=rng)
        state.kept = state.kept.reorder(order)
        plain.reorder(order)
        assert state.kept.rows == rows
    assert len(tables) <= 5  # and not one a step


def test_a_copied_state_goes_on_by_itself(rng):
    state, plain = State(), Plain()
    for _ in range(3):
        new = position(rng, 2)
        append(state, *new)
        plain.append(*new)
    copy, plain_copy = State(state.kept), Plain()
    plain_copy.tensors = list(plain.tensors)
    for _ in range(FIRST_POSITIONS):
        for one, other in ((state, plain), (copy, plain_copy)):
            new = position(rng, 2)
            past = append(one, *new)
            other.append(*new)
            check(past, other)


def test_a_memory_is_reordered_by_its_rows(rng):
    memory = Memory(*(torch.randn(3, HEADS, 4, 2, generator=rng) for _ in range(2)))
    moved = memory.reorder(torch.tensor([2, 0]))
    assert moved.rows == 2
    assert torch.equal(moved.key, memory.key[[2, 0]])
    assert torch.equal(moved.value, memory.value[[2, 0]])


def test_steps_that_were_compiled_are_gone_on_with_in_eager(monkeypatch):
    rng = torch.Generator().manual_seed(1)
    keys, values = (torch.randn(2, 3, 4, 5, generator=rng) for _ in range(2))
    state = State()
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    append(state, keys[:, :, :2], values[:, :, :2])
    monkeypatch.undo()
    for i in (2, 3):
        past = append(state, keys[:, :, i : i + 1], values[:, :, i : i + 1])
    for found, wanted in zip(past.gather(), (keys, values), strict=True):
        torch.testing.assert_close(found, wanted, rtol=0, atol=0)
