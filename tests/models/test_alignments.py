"""What the decoders here do not give is refused by name."""

from argparse import Namespace

import pytest

from hyptrans.support.errors import UserError
from tests.models.conftest import small


def test_alignments_are_refused():
    options = Namespace(print_alignment="hard")
    with pytest.raises(UserError, match="--print-alignment needs attention weights"):
        small("hybonet_tiny").prepare_for_inference_(Namespace(generation=options))
