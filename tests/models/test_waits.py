"""How often the host waits for the device, by the operators whose result it reads.

On the CPU in place of a GPU, with what is asked of the CPU alone as it is on CUDA.
"""

import pytest
import torch
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from hyptrans.fairseq.tiled import TiledCrossEntropy
from hyptrans.kernels import backend, loss
from hyptrans.layers.curvature import Curvature
from tests.models.conftest import ARCHITECTURES, SMALL, build, task_of

READ_BY_THE_HOST = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}
SOURCE = torch.tensor([[1, 1, 5, 6, 2], [4, 5, 6, 7, 2]])
PREVIOUS = torch.tensor([[2, 5, 6, 1], [2, 5, 6, 7]])
SAMPLE = {
    "id": torch.arange(2),
    "nsentences": 2,
    "ntokens": 7,
    "net_input": {
        "src_tokens": SOURCE,
        "src_lengths": torch.tensor([3, 5]),
        "prev_output_tokens": PREVIOUS,
    },
    "target": torch.tensor([[5, 6, 2, 1], [5, 6, 7, 2]]),
}


class Waits(TorchDispatchMode):
    """Notes down operators for whose numbers the host waits: ``.item()``, ``nonzero``, masks."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        by_places = operator is torch.ops.aten.index.Tensor and all(
            at is None or at.dtype == torch.int64 for at in args[1]
        )
        if READ_BY_THE_HOST & set(operator.tags) and not by_places:
            self.seen.append(operator.overloadpacket.__name__)
        return operator(*args, **(kwargs or {}))


@pytest.fixture(autouse=True)
def _as_on_cuda(monkeypatch):
    def curvature(self):
        return self.start if self.raw is None else F.softplus(self.raw)

    def noted(x):
        # of a tensor on the CPU it goes past all operators
        x.view(-1)[:1].sum().item()
        return tolist(x)

    tolist = torch.Tensor.tolist
    monkeypatch.setattr(torch.Tensor, "tolist", noted)
    monkeypatch.setattr(Curvature, "forward", curvature)
    monkeypatch.setattr(loss, "_in_range", lambda targets, _: targets)
    monkeypatch.setattr(backend, "CHOSEN", "eager")


def waits_of_a_step(arch, criterion):
    task = task_of()
    model = build(arch, task, **SMALL).train()
    with Waits() as waits:
        criterion(task, False, 0.1)(model, SAMPLE)[0].backward()
    return waits.seen


@pytest.mark.parametrize("criterion", [LabelSmoothedCrossEntropyCriterion, TiledCrossEntropy])
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_training_step_waits_once_where_fairseqs_own_does_not(arch, criterion):
    # fairseq's asks both sides whether there is padding
    fairseqs = waits_of_a_step("transformer_tiny", LabelSmoothedCrossEntropyCriterion)
    assert len(fairseqs) >= 2
    ours = waits_of_a_step(arch, criterion)
    assert len(ours) <= 2 + (criterion is TiledCrossEntropy), ours


@pytest.mark.parametrize("arch", ARCHITECTURES)
@torch.no_grad()
def test_a_decoding_step_waits_once_for_padding_and_once_for_beams(arch):
    model = build(arch, task_of(), **SMALL).eval()
    memory = model.encoder.forward_torchscript({"src_tokens": SOURCE, "src_lengths": None})
    state = {}
    for length in range(1, 5):
        with Waits() as waits:
            model.decoder(PREVIOUS[:, :length], encoder_out=memory, incremental_state=state)
            model.decoder.reorder_incremental_state_scripting(state, torch.tensor([1, 0]))
        assert length == 1 or len(waits.seen) <= 2, waits.seen


def test_a_target_out_of_range_fails_where_the_host_does_not_wait(monkeypatch):
    monkeypatch.undo()
    with Waits() as waits:
        made = loss._in_range(torch.empty(3, dtype=torch.int64, device="meta"), 7)
    assert made.shape == (3,)
    assert not waits.seen
