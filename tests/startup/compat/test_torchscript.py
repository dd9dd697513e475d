"""What fairseq exports by TorchScript, it exports under the start-up hook as without it."""

import io
from argparse import Namespace

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.models.lstm import LSTMModel
from fairseq.models.transformer import TransformerModel
from fairseq.modules import MultiheadAttention
from fairseq.sequence_generator import SequenceGenerator
from fairseq.tasks.fairseq_task import LegacyFairseqTask


class Task(LegacyFairseqTask):
    """A task of one small dictionary."""

    def __init__(self):
        super().__init__(Namespace())
        self.words = Dictionary()
        for i in range(20):
            self.words.add_symbol(f"w{i}")
        self.words.finalize(padding_factor=1)

    source_dictionary = property(lambda self: self.words)
    target_dictionary = property(lambda self: self.words)


TASK = Task()
SIZES = {
    f"{side}_{name}": value
    for side in ("encoder", "decoder")
    for name, value in {
        "embed_dim": 16,
        "ffn_embed_dim": 32,
        "attention_heads": 2,
        "layers": 2,
        "hidden_size": 16,
    }.items()
}


def built(model):
    """A model in evaluation, its weights loaded as from a checkpoint."""
    torch.manual_seed(0)
    args = Namespace(**SIZES, decoder_out_embed_dim=16, criterion="cross_entropy")
    made = model.build_model(args, TASK)
    made.load_state_dict(made.state_dict())
    return made.eval()


def batch():
    """Sources padded on the left, as fairseq pads them, with their lengths, and targets."""
    pad, eos = TASK.words.pad(), TASK.words.eos()
    source = torch.tensor([[7, 8, 9, 10, eos], [pad, pad, 5, 6, eos]])
    return source, torch.tensor([5, 3]), torch.tensor([[eos, 4, 5], [eos, 6, 7]])


def stored(scripted):
    file = io.BytesIO()
    torch.jit.save(scripted, file)
    file.seek(0)
    return torch.jit.load(file)


@pytest.mark.parametrize("model", [TransformerModel, LSTMModel])
def test_model_is_scripted_and_stored(model):
    made = built(model)
    source, lengths, previous = batch()
    with torch.no_grad():
        expected = made(source, lengths, previous)[0]
        got = stored(torch.jit.script(made))(source, lengths, previous)[0]
    torch.testing.assert_close(got, expected)


def test_encoder_of_a_padded_batch_is_scripted():
    encoder = built(TransformerModel).encoder
    source, lengths, _ = batch()
    scripted = torch.jit.script(encoder)
    with torch.no_grad():
        expected, got = encoder(source, lengths), scripted(source, lengths)
    real = source.ne(TASK.words.pad()).t()
    torch.testing.assert_close(got["encoder_out"][0][real], expected["encoder_out"][0][real])


def test_decoder_is_scripted():
    made = built(TransformerModel)
    source, lengths, previous = batch()
    with torch.no_grad():
        memory = made.encoder(source, lengths)
        expected = made.decoder(previous, memory)[0]
        got = torch.jit.script(made.decoder)(previous, memory)[0]
    torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("size", [0, 1, 2])
def test_sequence_generator_is_scripted(size):
    made = built(TransformerModel)
    source, lengths, _ = batch()
    generator = SequenceGenerator(
        [made], TASK.words, beam_size=2, max_len_b=9, min_len=9, no_repeat_ngram_size=size
    )
    sample = {"net_input": {"src_tokens": source, "src_lengths": lengths}}
    with torch.no_grad():
        expected = generator.forward(sample)
        got = torch.jit.script(generator)(sample)
    for ours, theirs in zip(got, expected, strict=True):
        found = [h["tokens"].tolist() for h in theirs]
        assert [h["tokens"].tolist() for h in ours] == found
        ngrams = [list(zip(*(h[i:] for i in range(size)), strict=False)) for h in found]
        assert all(len({*each}) == len(each) for each in ngrams)


def test_attention_is_scripted():
    torch.manual_seed(0)
    attention = MultiheadAttention(8, 2, self_attention=True).eval()
    x = torch.randn(4, 3, 8)
    padding = torch.tensor([[True, False, False, False], [False] * 4, [False] * 4])
    expected, _ = attention(x, x, x, key_padding_mask=padding)
    got, _ = torch.jit.script(attention)(x, x, x, padding)
    torch.testing.assert_close(got, expected)
