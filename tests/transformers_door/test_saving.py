import json
import resource
import shutil

import pytest
import torch

import hyptrans
from hyptrans.layers.manifold import manifold_parameters
from hyptrans.support.errors import UserError
from hyptrans.transformers import HyptransConfig, HyptransForConditionalGeneration


def save(model, tokenizer, out):
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    return out


def test_both_front_ends_load_a_saved_model(model, tokenizer, library, ours, tmp_path):
    with torch.no_grad():
        next(model.parameters()).mul_(1.25)
    model.generation_config.num_beams = 2
    out = save(model, tokenizer, tmp_path / "saved")
    again = hyptrans.load(out)
    assert again.translate("Good night.") == "Gute Nacht!"
    # the scores of another model are not kept
    assert set(again.facts) == {"dataset", "license"} < set(ours.facts)
    both = library.AutoModelForSeq2SeqLM.from_pretrained(out)
    assert both.generation_config.num_beams == 2
    for name, tensor in model.state_dict().items():
        assert torch.equal(again.model.state_dict()[name], tensor), name
        assert torch.equal(both.state_dict()[name], tensor), name
    texts = ["Good night.", "", "</s>"]
    assert library.AutoTokenizer.from_pretrained(out)(texts) == tokenizer(texts)


@pytest.mark.parametrize("name", ["hybonet_tiny", "hypformer_tiny", "euclidean_prenorm_tiny"])
def test_a_new_model_keeps_its_shared_tables_when_saved(name, tokenizer, tmp_path):
    config = HyptransConfig.of(tokenizer, name, share_decoder_input_output_embed=True)
    model = HyptransForConditionalGeneration(config)
    found = hyptrans.load(save(model, tokenizer, tmp_path)).model
    assert found.state_dict().keys() == model.state_dict().keys()
    for key, tensor in model.state_dict().items():
        assert torch.equal(found.state_dict()[key], tensor), key


def test_points_of_a_loaded_model_keep_their_manifold(library, tokenizer, tmp_path):
    config = HyptransConfig.of(tokenizer, "hybonet_tiny", embedding_storage="manifold")
    model = HyptransForConditionalGeneration(config)
    out = save(model, tokenizer, tmp_path)
    again = library.AutoModelForSeq2SeqLM.from_pretrained(out)
    assert manifold_parameters(again) == manifold_parameters(model) != []


def test_new_models_differ_unless_the_seed_is_the_same(tokenizer):
    config, made = HyptransConfig.of(tokenizer, "han_tiny"), []
    for _ in range(2):
        torch.manual_seed(1)
        made += [HyptransForConditionalGeneration(config) for _ in range(2)]
    first, second, third, _ = (model.encoder.embed_tokens.weight for model in made)
    assert not torch.equal(first, second)
    assert torch.equal(first, third)


def test_a_model_without_a_tokenizer_is_saved_without_a_card(library, tmp_path):
    sizes = {"source_vocab_size": 12, "vocab_size": 12}
    config = HyptransConfig(architecture="han_tiny", options={}, **sizes)
    HyptransForConditionalGeneration(config).save_pretrained(tmp_path)
    assert (tmp_path / "model.safetensors").is_file()
    assert not (tmp_path / "README.md").exists()


def test_a_full_disk_preserves_the_existing_subword_model(tokenizer, tmp_path):
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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"num_beams": ' + " " * (2 << 20) + "2}", "has more than 1,048,576 bytes"),
        ("{", "no object of JSON|Expecting"),
        ("[" * 100_000, "brackets"),
        ('{"num_beams": "2"}', "num_beams"),
        ('{"num_beams": 1000000000}', "num_beams"),
        ('{"max_length": true}', "max_length"),
        ('{"length_penalty": NaN}', "length_penalty"),
        ('{"suppress_tokens": [1, "x"]}', "suppress_tokens"),
        ('{"eos_token_id": 900000}', "eos_token_id"),
        ('{"validate": 3}', "has no option 'validate'"),
        ('{"watermarking_config": {"x": 1}}', "has no option 'watermarking_config'"),
    ],
)
def test_foreign_generation_configs_with_wrong_options_are_refused(text, message, place, tmp_path):
    shutil.copytree(place, tmp_path / "model")
    path = tmp_path / "model" / "generation_config.json"
    path.write_text(text)
    with pytest.raises(UserError, match=rf"generation_config\.json.*({message})"):
        HyptransForConditionalGeneration.from_pretrained(tmp_path / "model")


def test_saving_keeps_generation_options(model, tokenizer, library, tmp_path):
    told = {"length_penalty": 0.6, "no_repeat_ngram_size": 3, "max_length": 77, "num_beams": 3}
    told |= {"do_sample": True, "temperature": 0.5, "top_k": 20, "suppress_tokens": [1, 5]}
    for name, value in told.items():
        setattr(model.generation_config, name, value)
    out = save(model, tokenizer, tmp_path)
    assert told.items() <= json.loads((out / "generation_config.json").read_text()).items()
    again = library.AutoModelForSeq2SeqLM.from_pretrained(out).generation_config
    assert again.to_dict() == model.generation_config.to_dict()
