"""What torch.compile must be able to trust, in every version of torch."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from hyptrans.geometry import klein, poincare


class Written(TorchDispatchMode):
    """Keeps what operators have written in place."""

    def __init__(self):
        super().__init__()
        self.tensors = []

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        out = operator(*args, **(kwargs or {}))
        if operator._schema.is_mutable:
            self.tensors.append(out)
        return out


@pytest.mark.parametrize("function", [lambda p: klein.Arcosh.apply(-p), poincare.squared_arcosh])
def test_custom_autograd_results_are_not_modified_in_place(function):
    # torch.compile of torch 2.11 gives such a result no gradient (pytorch/pytorch#180642)
    with Written() as written:
        made = function(torch.tensor([-1.5, -2.0], requires_grad=True))
    assert written.tensors
    assert made.data_ptr() not in [tensor.data_ptr() for tensor in written.tensors]
