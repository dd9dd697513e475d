"""What the library saves is a model folder."""

import resource

import pytest
import torch

import hyptrans
from hyptrans.support.errors import UserError


def save(model, tokenizer, out):
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    return out


def test_a_saved_model_is_read_by_both_doors(model, tokenizer, library, ours, tmp_path):
    with torch.no_grad():
        next(model.parameters()).mul_(1.25)
    out = save(model, tokenizer, tmp_path / "saved")
    again = hyptrans.load(out)
    assert again.translate("Good night.") == "Gute Nacht!"
    # the scores of another model are not kept
    assert set(again.facts) == {"dataset", "license"} < set(ours.facts)
    both = library.AutoModelForSeq2SeqLM.from_pretrained(out)
    for name, tensor in model.state_dict().items():
        assert torch.equal(again.model.state_dict()[name], tensor), name
        assert torch.equal(both.state_dict()[name], tensor), name
    texts = ["Good night.", "", "</s>"]
    assert library.AutoTokenizer.from_pretrained(out)(texts) == tokenizer(texts)


@pytest.mark.parametrize("name", ["hybonet_tiny", "hypformer_tiny", "euclidean_prenorm_tiny"])
def test_a_new_model_is_saved_with_what_it_shares(name, tokenizer, tmp_path):
    from hyptrans.transformers import HyptransConfig, HyptransForConditionalGeneration

    config = HyptransConfig.of(tokenizer, name, share_decoder_input_output_embed=True)
    model = HyptransForConditionalGeneration(config)
    found = hyptrans.load(save(model, tokenizer, tmp_path)).model
    assert found.state_dict().keys() == model.state_dict().keys()
    for key, tensor in model.state_dict().items():
        assert torch.equal(found.state_dict()[key], tensor), key


def test_a_new_model_with_wrong_options_is_refused(tokenizer):
    from hyptrans.transformers import HyptransConfig

    with pytest.raises(UserError, match="has no option 'width'"):
        HyptransConfig.of(tokenizer, "hybonet_tiny", width=3)
    with pytest.raises(UserError, match="a joined dictionary"):
        HyptransConfig.of(tokenizer, "hybonet_tiny", share_all_embeddings=True)


def test_a_full_disk_leaves_the_subword_model_that_was_there(tokenizer, tmp_path):
    """Of one that is larger than both dictionaries."""
    tokenizer.save_vocabulary(tmp_path)
    before = (tmp_path / "sentencepiece.model").read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    assert len(before) > 100_000
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
        with pytest.raises(OSError, match="File too large"):
            tokenizer.save_vocabulary(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (tmp_path / "sentencepiece.model").read_bytes() == before
