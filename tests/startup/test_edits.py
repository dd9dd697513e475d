"""With the edits, fairseq does what it fails at without them."""

import io
import sys
from unittest import mock

import pytest
import torch
from fairseq import options
from fairseq.data import Dictionary, LanguagePairDataset, TokenBlockDataset
from fairseq.data.data_utils import compute_mask_indices, get_buckets
from fairseq.distributed import utils as distributed
from fairseq.models.transformer import TransformerConfig
from fairseq.modules import DynamicCRF
from fairseq.modules.transformer_layer import TransformerEncoderLayerBase
from fairseq.sequence_generator import SequenceGenerator
from omegaconf import OmegaConf

from tests.models.conftest import SMALL, build, dictionary, task_of


def test_token_blocks_avoid_the_removed_numpy_int():
    blocks = TokenBlockDataset([[1, 2], [3]], [2, 1], None, pad=0, eos=0, break_mode="eos")
    assert len(blocks) == 2


def test_buckets_avoid_removed_numpy_names():
    words, sizes = Dictionary(), [2, 4]
    sentences = [torch.tensor([4, 2]), torch.tensor([4, 4, 4, 2])]
    sides = (sentences, sizes, words)
    pairs = LanguagePairDataset(*sides, *sides, num_buckets=2, left_pad_source=False)
    assert pairs.bucketed_num_tokens.tolist() == [2, 4]
    assert get_buckets([1, 2, 3, 4, 5, 6], 2).tolist() == [3, 6]


def test_masks_avoid_the_removed_numpy_int():
    assert compute_mask_indices((1, 50), None, 0.3, 5, no_overlap=True, min_masks=2).any()


def test_random_field_avoids_the_removed_numpy_float():
    emissions, targets = torch.zeros(1, 3, 8), torch.tensor([[1, 2, 3]])
    masks = torch.ones(1, 3, dtype=torch.bool)
    assert DynamicCRF(8, beam_size=4)(emissions, targets, masks).isfinite().all()


def test_training_processes_exchange_objects():
    sent = io.BytesIO()
    state = {"cfg": OmegaConf.create({"lr": [0.1]}), "model": torch.ones(2)}
    torch.save(distributed._split_tensors_from_obj(state, []), sent)
    parts = iter([torch.tensor([len(sent.getvalue())]), torch.tensor([*sent.getvalue()])])
    with (
        mock.patch.object(distributed, "get_rank", return_value=1),
        mock.patch.object(distributed, "broadcast", lambda to, **_: to.copy_(next(parts))),
    ):
        got = distributed._broadcast_object_slow(None, 0, None, torch.device("cpu"))
    assert got["cfg"].lr == [0.1]


def test_post_norm_layer_handles_padding_and_has_gradients_in_evaluation(rng):
    config = TransformerConfig()
    config.encoder.embed_dim, config.encoder.ffn_embed_dim = 16, 32
    config.encoder.attention_heads = 2
    layer = TransformerEncoderLayerBase(config).eval()
    # fairseq takes torch's fused layer only for weights from a checkpoint
    layer.load_state_dict(layer.state_dict())
    x = torch.randn(5, 3, 16, generator=rng, requires_grad=True)
    padding = torch.tensor([[1, 1, 0, 0, 0], [0] * 5, [1, 0, 0, 0, 0]]).bool()
    layer(x, padding)[~padding.t()].sum().backward()
    assert x.grad.isfinite().all()
    assert x.grad[0, 0].eq(0).all()


def test_bf16_needs_no_tpu():
    flags = ["data", "--arch", "transformer", "--optimizer", "adam", "--lr", "1", "--bf16"]
    args = options.parse_args_and_arch(options.get_training_parser(), flags)
    assert args.bf16
    assert not args.tpu


@pytest.mark.parametrize("scripted", [False, True])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_no_repeat_ngram_size_blocks_repeated_ngrams(size, scripted):
    torch.manual_seed(0)
    words = dictionary()
    model = build("transformer", task_of(words), **SMALL).eval()
    model.load_state_dict(model.state_dict())
    pad, eos = words.pad(), words.eos()
    source = torch.tensor([[7, 8, 9, 10, eos], [pad, pad, 5, 6, eos]])
    made = SequenceGenerator(
        [model], words, beam_size=2, max_len_b=15, min_len=15, no_repeat_ngram_size=size
    )
    generate = torch.jit.script(made) if scripted else made.forward
    with torch.no_grad():
        found = generate({"net_input": {"src_tokens": source, "src_lengths": torch.tensor([5, 3])}})
    for sentence in found:
        for hypothesis in sentence:
            tokens = hypothesis["tokens"].tolist()[:-1]
            ngrams = list(zip(*(tokens[i:] for i in range(size)), strict=False))
            assert len({*ngrams}) == len(ngrams) > 10


@pytest.mark.parametrize("flag", ["--sacrebleu", "--sentence-bleu", "--ignore-case"])
def test_every_scorer_of_fairseq_works(flag, monkeypatch, tmp_path, capsys):
    from fairseq_cli import score

    path = tmp_path / "text"
    path.write_text("a b c d e\n")
    monkeypatch.setattr(sys, "argv", ["fairseq-score", flag, f"--sys={path}", f"--ref={path}"])
    score.cli_main()
    assert "100.0/100.0/100.0/100.0" in capsys.readouterr().out
