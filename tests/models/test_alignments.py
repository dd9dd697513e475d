"""What the decoders here do not give is refused by name."""

import pytest
import torch
from fairseq.sequence_generator import SequenceGeneratorWithAlignment

from hyptrans.support.errors import UserError
from tests.models.conftest import dictionary, small, task_of


def test_alignments_are_refused():
    words = dictionary()
    model = small("hybonet_tiny", task_of(words))
    generator = SequenceGeneratorWithAlignment([model], words, beam_size=2, max_len_b=5)
    source = torch.tensor([[5, 6, words.eos()]])
    sample = {"net_input": {"src_tokens": source, "src_lengths": torch.tensor([3])}}
    with pytest.raises(UserError, match="--print-alignment needs attention weights"):
        generator.generate([model], sample)
