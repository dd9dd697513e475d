"""Trainings with kernels beside the same with the plain formulas, and in several processes."""

import os
import subprocess
import sys

import pytest
import torch
from fairseq.models import MODEL_REGISTRY
from torch.nn import functional as F

from hyptrans.kernels import backend
from tests.models.conftest import ARCHITECTURES, build, dictionary, task_of

OWN = [arch for arch in ARCHITECTURES if MODEL_REGISTRY[arch].__module__.startswith("hyptrans.")]
"""Those of the package; other tests register some that are not."""
UPDATES = 200
SMALL = {
    f"{side}_{name}": value
    for side in ("encoder", "decoder")
    for name, value in (
        ("embed_dim", 32),
        ("ffn_embed_dim", 64),
        ("layers", 2),
        ("attention_heads", 2),
    )
}


def losses_of(arch, dropout):
    """Losses of a small model that learns to copy sentences of 20 words."""
    torch.manual_seed(1)
    model = build(arch, task_of(dictionary(20)), dropout=dropout, **SMALL).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, betas=(0.9, 0.98))
    rng = torch.Generator().manual_seed(2)
    losses = []
    for _ in range(UPDATES):
        sentences = torch.randint(4, 24, (16, 8), generator=rng)
        previous = F.pad(sentences[:, :-1], (1, 0), value=2)
        logits, _ = model(sentences, None, previous)
        loss = F.cross_entropy(logits.flatten(0, 1), sentences.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return torch.tensor(losses)


@pytest.mark.slow
# the rate is one at which they learn fast
@pytest.mark.parametrize("arch", OWN)
def test_the_loss_curve_is_that_of_the_plain_formulas(arch, monkeypatch):
    curves = {}
    for kernels in ("numba", "eager"):
        monkeypatch.setattr(backend, "CHOSEN", kernels)
        curves[kernels] = losses_of(arch, dropout=0.0)
    numba, eager = curves["numba"], curves["eager"]
    assert eager[-20:].mean() < 0.8 * eager[:20].mean()
    # rounding grows from update to update, so single losses agree at first and means later
    torch.testing.assert_close(numba[:10], eager[:10], rtol=1e-4, atol=1e-4)
    for start in range(0, UPDATES, 20):
        assert numba[start : start + 20].mean() == pytest.approx(
            eager[start : start + 20].mean().item(), rel=0.05, abs=0.02
        )


@pytest.mark.slow
def test_with_dropout_the_loss_falls_as_fast_as_with_that_of_torch(monkeypatch):
    curves = {}
    for kernels in ("numba", "eager"):
        monkeypatch.setattr(backend, "CHOSEN", kernels)
        curves[kernels] = losses_of("hybonet_tiny", dropout=0.1)
    ours, theirs = (curves[name][-40:].mean().item() for name in ("numba", "eager"))
    assert ours == pytest.approx(theirs, rel=0.15)


GLOO = """
import sys, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
sys.path.insert(0, sys.argv[1])
rank = int(sys.argv[2])
dist.init_process_group("gloo", init_method=f"file://{sys.argv[3]}", rank=rank, world_size=2)
from hyptrans.kernels.backend import backend
from hyptrans.layers.hybonet import LorentzFeedForward
from hyptrans.geometry import lorentz
torch.manual_seed(0)
layer = DistributedDataParallel(LorentzFeedForward(16, 32, dropout=0.1))
assert backend(torch.ones(2)) == "numba"
optimizer = torch.optim.Adam(layer.parameters(), lr=1e-2)
torch.manual_seed(rank)
for _ in range(3):
    x = lorentz.lift(torch.randn(20_000, 15))
    layer(x).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
mine = torch.cat([p.detach().flatten() for p in layer.parameters()])
both = [torch.empty_like(mine) for _ in range(2)]
dist.all_gather(both, mine)
assert torch.isfinite(mine).all() and torch.equal(*both)
"""


@pytest.mark.slow
def test_two_processes_train_one_model(tmp_path):
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    command = [sys.executable, "-c", GLOO, root]
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    processes = [
        subprocess.Popen([*command, str(rank), str(tmp_path / "meeting")], env=environment)
        for rank in range(2)
    ]
    assert [process.wait(timeout=120) for process in processes] == [0, 0]


WORKERS = """
import torch
from torch.utils.data import DataLoader, Dataset
from hyptrans.kernels.lorentz import normalize

class Points(Dataset):
    def __len__(self):
        return 6
    def __getitem__(self, i):
        return normalize(torch.tensor([[5.0, 3.0]]) * (i + 1)).expand(2, 2) + i

if __name__ == "__main__":
    normalize(torch.tensor([[5.0, 3.0]]).repeat(150_000, 1))
    for context in ("fork", "spawn"):
        loaded = list(DataLoader(Points(), num_workers=2, multiprocessing_context=context))
        assert [batch[0, 0, 1].item() for batch in loaded] == [0.75 + i for i in range(6)]
"""


@pytest.mark.slow
def test_workers_of_a_data_loader_run_kernels(tmp_path):
    script = tmp_path / "workers.py"
    script.write_text(WORKERS, encoding="utf-8")
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    subprocess.run([sys.executable, str(script)], check=True, timeout=180, env=environment)
