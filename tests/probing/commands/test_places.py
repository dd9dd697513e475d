"""Where encoders are found, and where results of a run go."""

import pytest

from hyptrans.inference.load import SHIPPED
from hyptrans.support.errors import UserError
from hyptrans.support.files import sha256
from probing.commands.sources import Source, subjects_of


def test_results_beside_an_encoder_are_refused(tmp_path):
    checkpoint = tmp_path / "hybonet" / "checkpoint_best.pt"
    checkpoint.parent.mkdir()
    checkpoint.touch()
    with pytest.raises(UserError, match="into the folder that holds"):
        subjects_of([Source(str(checkpoint))], None, tmp_path, random=False)
    assert subjects_of([Source(str(checkpoint))], None, tmp_path / "out", random=False)


def test_a_model_of_the_package_goes_by_its_name():
    source = Source("tatoeba-en-de", hf=True)
    assert source.label == "tatoeba-en-de"
    assert source.made_from() == {"hf": sha256(SHIPPED / "tatoeba-en-de")}
    assert source.load(random=False, seed=1).architecture == "hybonet_plus_iwslt_d64"
