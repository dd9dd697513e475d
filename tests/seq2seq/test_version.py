"""Checkpoints say which version wrote them, and are refused by one that would misread them."""

import pytest
import torch

from hyptrans.seq2seq import version as _version
from hyptrans.support.errors import UserError
from tests.models.conftest import SMALL, build


def written_by(version):
    parameters = build("hybonet_tiny", **SMALL).state_dict()
    if version is None:
        del parameters["version"]
    else:
        parameters["version"] = torch.tensor(version)
    return parameters


@pytest.mark.parametrize("version", [(0, 2, 0), (0, 3, 7)])
def test_a_supported_checkpoint_loads_and_takes_the_current_version(version, monkeypatch):
    monkeypatch.setattr(_version, "__version__", "0.3.0")
    model = build("hybonet_tiny", **SMALL)
    model.load_state_dict(written_by(version))
    assert model.version.tolist() == [0, 3, 0]


@pytest.mark.parametrize(
    ("version", "named"),
    [(None, "0.1.0"), ((0, 1, 3), "0.1.3"), ((0, 4, 0), "0.4.0"), ((9, 2, 0), "9.2.0")],
)
def test_error_names_the_version_of_an_unsupported_checkpoint(version, named):
    with pytest.raises(UserError, match=f"was written by hyptrans {named}"):
        build("hybonet_tiny", **SMALL).load_state_dict(written_by(version))
