import pytest
import torch

from hyptrans.seq2seq.stacks import token_positions
from tests.models.conftest import ARCHITECTURES as NAMES
from tests.models.conftest import dictionary, small

WORDS = dictionary()
PAD, EOS = WORDS.pad(), WORDS.eos()
SOURCE = torch.tensor([[PAD, PAD, 5, 9, 4, 7, EOS], [5, 6, 11, 12, 4, 8, EOS]])
WHOLE = torch.tensor([[EOS, 5, 6, 7, 8, 9], [EOS, 10, 11, 12, 13, 14]])
HOLES = torch.tensor([[EOS, 5, PAD, 6, PAD, PAD, 7, 8, 9], [EOS, 10, 11, 12, 13, 14, *[PAD] * 3]])
EXACT = {"rtol": 0, "atol": 1e-9}

ROTARY = [
    (f"{name}_tiny", {"rotary_positions": True})
    for name in ("hybonet", "hybonet_plus", "sphere", "euclidean")
]
every_model = pytest.mark.parametrize(
    ("arch", "options"),
    [*((arch, {}) for arch in NAMES), *ROTARY],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else value,
)


def real(logits, tokens):
    return logits.log_softmax(-1)[tokens.ne(PAD)]


# rotations count columns, and no batch has padding inside
@pytest.mark.parametrize("arch", NAMES)
def test_padding_inside_a_target_changes_nothing(arch):
    model = small(arch)
    wanted = real(model(SOURCE, None, WHOLE)[0], WHOLE)
    torch.testing.assert_close(real(model(SOURCE, None, HOLES)[0], HOLES), wanted, **EXACT)
    rows = zip(SOURCE.split(1), HOLES.split(1), strict=True)
    alone = [real(model(source, None, previous)[0], previous) for source, previous in rows]
    torch.testing.assert_close(torch.cat(alone), wanted, **EXACT)


@every_model
@pytest.mark.parametrize("gradients", [True, False], ids=["gradients", "none"])
@pytest.mark.parametrize("tokens", [HOLES, HOLES.roll(2, 1)], ids=["inside", "first"])
def test_padding_of_a_target_changes_no_decoding_step(arch, options, tokens, gradients):
    model = small(arch, **options)
    with torch.set_grad_enabled(gradients):
        memory, padding = model.encoder.memory(SOURCE)
        wanted, state = model(SOURCE, None, tokens)[0].log_softmax(-1), model.decoder.start()
        for length in range(1, tokens.size(1) + 1):
            step = model.decoder.predict(tokens[:, :length], memory, padding, state)
            rows = tokens[:, length - 1].ne(PAD)
            found = step[rows, -1].log_softmax(-1)
            torch.testing.assert_close(found, wanted[rows, length - 1], **EXACT)


@every_model
def test_rows_of_padding_give_finite_gradients_in_evaluation(arch, options):
    source = torch.cat([SOURCE, torch.full_like(SOURCE[:1], PAD)])
    previous = torch.cat([HOLES, torch.full_like(HOLES[:1], PAD)])
    for training in (False, True):
        model = small(arch, dropout=0.0, **options).train(training)
        real(model(source, None, previous)[0], previous).sum().backward()
        for name, parameter in model.named_parameters():
            assert parameter.grad is not None, name
            assert torch.isfinite(parameter.grad).all(), name


def test_positions_count_from_0_and_skip_padding():
    padding = torch.tensor([[0, 0, 0, 0], [0, 0, 1, 1], [1, 1, 0, 0]]).bool()
    found = token_positions(padding, 4)
    wanted = torch.tensor([[0, 1, 2, 3], [0, 1, 0, 0], [0, 0, 0, 1]])
    assert torch.equal(found[~padding], wanted[~padding])
    assert found.min() == 0
    with pytest.raises(
        ValueError, match="a sentence has 4 tokens, the model takes 3: raise --max-"
    ):
        token_positions(padding, 3)
