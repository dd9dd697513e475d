import pytest
import torch

from hyptrans.seq2seq import version as _version
from hyptrans.support.errors import UserError
from tests.models.conftest import ARCHITECTURES, SMALL, build


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("shared", ["share_all_embeddings", "share_decoder_input_output_embed"])
def test_different_tables_are_not_merged(arch, shared):
    apart, together = build(arch, **SMALL), build(arch, **SMALL, **{shared: True})
    before = {name: one.clone() for name, one in together.state_dict().items()}
    # as torch has it, whose names of one table follow each other
    stored = {name: apart.state_dict().get(name, one) for name, one in before.items()}
    with pytest.raises(
        UserError, match="differ, and this model has one table for both: leave --sh"
    ):
        together.load_state_dict(stored)
    for name, one in together.state_dict().items():
        torch.testing.assert_close(one, before[name], rtol=0, atol=0)


@pytest.mark.parametrize("value", [1.0, float("nan")])
def test_a_table_stored_twice_may_be_shared(value):
    together = build("hybonet_tiny", **SMALL, share_all_embeddings=True)
    own = together.state_dict()
    stored = {name: torch.full_like(one, value) for name, one in own.items() if name != "version"}
    stored["version"] = together.version.clone()
    together.load_state_dict(stored)
    assert together.encoder.embed_tokens.weight is together.decoder.embed_tokens.weight


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
