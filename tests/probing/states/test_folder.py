"""Folders in Hugging Face's format whose settings are looked at before its libraries read them."""

import base64
import json
import struct

import pytest

from hyptrans.support.errors import UserError
from probing.states import folder

REPLACE = {"type": "Replace", "pattern": {"String": "a"}, "content": "b" * 40}


def precompiled(written):
    table = struct.pack("<I", 4) + b"trie" + written
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(table).decode()}


def sequence(*normalizers):
    return {"type": "Sequence", "normalizers": [*normalizers]}


def check(path, *, config=None, **tokenizer):
    (path / "config.json").write_text(json.dumps(config or {}))
    (path / "tokenizer.json").write_text(json.dumps(tokenizer))
    folder.check(path)


@pytest.mark.parametrize(
    "normalizer",
    [
        None,
        REPLACE,
        # as ALBERT's: quotation marks, and runs of spaces
        sequence(*({**REPLACE, "content": '"'} for _ in range(3)), precompiled(b"ab\0")),
        {"type": "Prepend", "prepend": "\u2581"},
    ],
)
def test_what_known_tokenizers_do_is_taken(tmp_path, normalizer):
    config = {"attn_implementation": {"": "sdpa", "text_config": None}, "backbone": None}
    check(tmp_path, config=config, normalizer=normalizer)


@pytest.mark.parametrize(
    ("normalizer", "problem"),
    [
        ({**REPLACE, "content": "b" * 1_000}, "many times as long"),
        (sequence(REPLACE, REPLACE), "many times as long"),
        # the library takes it without its type too
        ({"pattern": {"Regex": "a"}, "content": "b" * 1_000}, "many times as long"),
        ({"type": "Prepend", "prepend": "b" * 1_001}, "many times as long"),
        (precompiled(b"b" * 1_001 + b"\0"), "a rule writes more than 1,000 bytes"),
        (sequence(precompiled(b"b\0"), precompiled(b"b\0")), "many times as long"),
        ({"precompiled_charsmap": "?"}, "its table of characters is damaged"),
    ],
)
@pytest.mark.parametrize("part", ["normalizer", "pre_tokenizer"])
def test_texts_do_not_grow(tmp_path, part, normalizer, problem):
    with pytest.raises(UserError, match=f"--hf {tmp_path} is refused: .*{problem}"):
        check(tmp_path, **{part: normalizer})


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"attn_implementation": "a/b"}, "code to be fetched, 'a/b'"),
        ({"x": [{"_y_implementation": {"": "a/b"}}]}, "code to be fetched"),
        ({"attn_implementation": "flash_attention_2"}, "code to be fetched"),
        ({"_attn_implementation_internal": "a/b"}, "code to be fetched"),
        ({"backbone": "a/b"}, "another model to be fetched, 'a/b'; take 'backbone' out of it"),
        ({"x": {"backbone_config": {"backbone": "a"}}}, "another model"),
        ({"use_timm_backbone": True}, "another model"),
        # of names of settings: it would hide those that are looked for
        ({"attribute_map": {"x": "_attn_implementation_internal"}, "x": "a/b"}, "settings anew"),
        ({"transformers_weights": "../a.safetensors"}, "no safetensors file of the folder"),
        ({"transformers_weights": "a.bin"}, "no safetensors file of the folder"),
    ],
)
def test_what_is_elsewhere_is_refused(tmp_path, config, problem):
    with pytest.raises(UserError, match=f"is refused: config.json names .*{problem}"):
        check(tmp_path, config=config)


@pytest.mark.parametrize("key", ["fast_tokenizer_files", "tokenizer_file"])
def test_the_tokenizer_is_the_one_that_is_looked_at(tmp_path, key):
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({key: ["tokenizer.4.0.json"]}))
    with pytest.raises(UserError, match=r"tokenizer_config.json names another tokenizer"):
        check(tmp_path)


@pytest.mark.parametrize(
    "place", ["../a.safetensors", "sub/a.safetensors", "/a.safetensors", "a.bin", 5, None]
)
def test_parameters_are_in_files_of_the_folder(tmp_path, place):
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "a-1.safetensors"}}))
    check(tmp_path)
    index.write_text(json.dumps({"weight_map": {"a": "a-1.safetensors", "b": place}}))
    with pytest.raises(UserError, match=r"index.json names '.*no safetensors file of the folder"):
        check(tmp_path)
    index.write_text("{}")
    with pytest.raises(UserError, match=r"index.json has no weight_map"):
        check(tmp_path)


def test_a_device_and_a_tokenizer_that_is_made_first_are_refused(tmp_path):
    (tmp_path / "spiece.model").write_bytes(b"")
    with pytest.raises(UserError, match=r"has no tokenizer.json"):
        folder.check(tmp_path)
    check(tmp_path)
    (tmp_path / "vocab.txt").symlink_to("/dev/zero")
    with pytest.raises(UserError, match=r"refused: 'vocab.txt' is no file"):
        folder.check(tmp_path)


def test_an_adapter_of_another_model_is_refused(tmp_path):
    (tmp_path / "adapter_config.json").write_text('{"base_model_name_or_path": "a/b"}')
    with pytest.raises(UserError, match=r"is refused: adapter_config.json names another model"):
        check(tmp_path)


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', "[]", "[" * 100_000, "{"])
def test_what_readers_take_in_different_ways_is_refused(tmp_path, text):
    (tmp_path / "tokenizer.json").write_text(text)
    with pytest.raises(UserError, match="is refused: "):
        folder.check(tmp_path)
