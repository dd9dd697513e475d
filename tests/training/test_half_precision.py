"""Training in half precision beside float32, on sentences that are copied or reversed."""

import itertools

import pytest
import torch

import hyptrans.fairseq  # noqa: F401

# isort: split
from fairseq import utils
from fairseq.criterions.label_smoothed_cross_entropy import label_smoothed_nll_loss
from fairseq.optim.adam import Adam

from recipes.benchmark.speed import Size, build

APART = {"hybonet": 0.1, "han": 0.02, "hypformer": 0.03, "hybonet_plus": 0.04}
"""Tolerance of the curves in nats: a few times what was measured on a CPU."""
LENGTH, SENTENCES, UPDATES, PERIOD = 12, 64, 60, 20
RATE, WARM_UP = 2e-3, 40
INITIAL_SCALE = 2.0**7
"""Of the loss in float16: fairseq's. With torch's, 2^16, the first updates are skipped."""
PAD, EOS, COPY, REVERSE, WORDS = 1, 2, 4, 5, range(6, 46)


def batches(device):
    """Yield sentences to copy or to reverse, as their first word says: sources and targets."""
    rng = torch.Generator().manual_seed(1)
    end = torch.full((SENTENCES, 1), EOS)
    while True:
        words = torch.randint(WORDS[0], WORDS[-1] + 1, (SENTENCES, LENGTH), generator=rng)
        task = torch.randint(COPY, REVERSE + 1, (SENTENCES, 1), generator=rng)
        target = torch.where(task == COPY, words, words.flip(-1))
        yield torch.cat([task, words, end], -1).to(device), torch.cat([target, end], -1).to(device)


def curve(arch, device, dtype=None):
    """Means of the loss per token, in nats, over every ``PERIOD`` updates; None: in float32."""
    size = Size("tiny", LENGTH + 2, layers=2, dropout=0.0)
    model = build(arch, size, device).train()
    parameters = list(model.parameters())
    optimizer = Adam(parameters, lr=RATE, betas=(0.9, 0.98))
    scaled = dtype == torch.float16
    scaler = torch.amp.GradScaler(device, init_scale=INITIAL_SCALE, enabled=scaled)
    losses = []
    for update, (source, target) in enumerate(itertools.islice(batches(device), UPDATES)):
        for group in optimizer.param_groups:
            group["lr"] = RATE * min(1, (update + 1) / WARM_UP)
        lengths = torch.full((SENTENCES,), source.size(1), device=device)
        with torch.autocast(device, dtype=dtype, enabled=dtype is not None):
            output = model(source, lengths, target.roll(1, dims=-1))
            logits = model.get_normalized_probs(output, log_probs=True)
            smoothed, plain = label_smoothed_nll_loss(
                logits.flatten(0, 1), target.view(-1, 1), 0.1, ignore_index=PAD
            )
        scaler.scale(smoothed / target.numel()).backward()
        scaler.unscale_(optimizer)
        utils.clip_grad_norm_(parameters, 0.5)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        losses.append(plain.detach() / target.numel())
    return torch.stack(losses).view(-1, PERIOD).mean(1).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("arch", APART)
def test_half_precision_curves_stay_near_float32(arch, device):
    wanted = curve(arch, device)
    for dtype in (torch.bfloat16, *[torch.float16] * (arch == "hybonet")):
        found = curve(arch, device, dtype)
        assert found == pytest.approx(wanted, abs=APART[arch])
        assert found[-1] < 0.6 * found[0]
