"""Results of a probing run never go into a folder that holds an encoder."""

import pytest

from hyptrans.support.errors import UserError
from probing.commands.sources import Source, subjects_of


def test_results_beside_an_encoder_are_refused(tmp_path):
    checkpoint = tmp_path / "hybonet" / "checkpoint_best.pt"
    checkpoint.parent.mkdir()
    checkpoint.touch()
    with pytest.raises(UserError, match="into the folder that holds"):
        subjects_of([Source(str(checkpoint))], None, tmp_path, random=False)
    assert subjects_of([Source(str(checkpoint))], None, tmp_path / "out", random=False)
