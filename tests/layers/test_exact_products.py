"""Products of points, distances and logits keep float32 where torch may multiply in less.

On the CPU in place of a GPU: torch may take bfloat16 there as it may take TF32 on CUDA.
"""

from types import SimpleNamespace

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from hyptrans.geometry import klein, lorentz, poincare, precision
from hyptrans.kernels import backend
from hyptrans.kernels.products import label_smoothed_cross_entropy
from hyptrans.layers.han import HyperbolicAttention
from hyptrans.layers.hvt_attention import PoincareAttention
from hyptrans.layers.lorentz import LorentzEmbedding, LorentzLogits, mixed_centroids
from hyptrans.layers.sphere import SphereLogits
from tests.geometry.helpers import points

settings = getattr(torch.backends.mkldnn, "matmul", None)
pytestmark = pytest.mark.skipif(
    not hasattr(settings, "fp32_precision"), reason="a torch without settings of the CPU's products"
)

POINTS = {
    "pairwise inner": lambda x: lorentz.pairwise_inner(x, x),
    "centroid": lambda x: lorentz.centroid(x, x[..., :1].mT),
    "distances of Klein": lambda x: klein.distances(x, x),
    "squared distances": lambda x: poincare.pairwise_squared_distance(x, x),
    "attention of HyboNet": lambda x: mixed_centroids(
        x, x, x, c=1.0, allowed=torch.ones(1, 1, 1, x.size(-2), dtype=torch.bool), is_causal=False
    ),
    "attention of HAN": lambda x: HyperbolicAttention(16, 2).mix(
        x, x, x, allowed=None, is_causal=True
    ),
    "attention of HVT": lambda x: PoincareAttention(16, 2).mix(
        x, x, x, allowed=None, is_causal=True
    ),
    "logits": lambda x: LorentzLogits(LorentzEmbedding(20, x.size(-1)))(x),
    "logits of spheres": lambda x: SphereLogits(torch.nn.Embedding(20, x.size(-1)))(x),
    "loss": lambda x: label_smoothed_cross_entropy(
        x[0, 0],
        torch.randn(20, x.size(-1), requires_grad=True),
        torch.arange(x.size(-2)),
        smoothing=0.1,
    )[0],
}
OF_MATRICES = {"mm", "bmm", "addmm", "addmm_", "baddbmm"}


class Settings(TorchDispatchMode):
    """Notes down what torch may take for each product of matrices."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        if operator.overloadpacket.__name__ in OF_MATRICES:
            self.seen.append(settings.fp32_precision)
        return operator(*args, **(kwargs or {}))


@pytest.fixture
def short():
    before = settings.fp32_precision
    settings.fp32_precision = "bf16"
    yield
    settings.fp32_precision = before


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("kernels", ["auto", "eager"])
@pytest.mark.parametrize("name", POINTS)
def test_products_are_exact_and_so_are_their_gradients(name, kernels, rng, monkeypatch):
    monkeypatch.setattr(backend, "CHOSEN", kernels)
    x = points(rng, 1, 2, 9, 9, radius=2.0, dtype=torch.float32).requires_grad_()
    fused = torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION)
    with fused, Settings() as products:
        made = POINTS[name](x)
        forward = len(products.seen)
        made.sum().backward()
    assert products.seen == ["ieee"] * len(products.seen)
    assert settings.fp32_precision == "bf16"
    if name != "attention of HyboNet":  # one operator of torch
        assert forward
        assert len(products.seen) > forward or name == "loss"


@pytest.mark.parametrize(
    ("setting", "short", "exact"), [("allow_tf32", True, False), ("fp32_precision", "tf32", "ieee")]
)
def test_exact_products_set_and_restore_cudas_precision_setting(setting, short, exact, monkeypatch):
    cuda = SimpleNamespace(**{setting: short})
    monkeypatch.setitem(precision._PRODUCTS, "cuda", cuda)
    monkeypatch.setattr(precision, "_SETTING", setting)
    monkeypatch.setattr(torch.amp, "is_autocast_available", lambda _: False)
    with precision.full_precision(SimpleNamespace(device=torch.device("cuda"))):
        assert vars(cuda) == {setting: exact}
    assert vars(cuda) == {setting: short}
