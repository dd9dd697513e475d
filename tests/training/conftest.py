"""Where trainings of tests run: ``--device``, an option of pytest for files of this folder."""

import pytest
import torch


def pytest_addoption(parser):
    parser.addoption("--device", default="cpu", choices=("cpu", "cuda"), help="of trainings")


@pytest.fixture
def device(request):
    name = request.config.getoption("--device", "cpu")
    if name == "cuda" and not torch.cuda.is_available():
        pytest.fail("--device cuda: torch finds no CUDA device here")
    return name
