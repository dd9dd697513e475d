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
    check(tmp_path, config={"attn_implementation": "sdpa"}, normalizer=normalizer)


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
    "config", [{"attn_implementation": "a/b"}, {"x": [{"_y_implementation": {"": "a/b"}}]}]
)
def test_code_by_name_is_refused(tmp_path, config):
    with pytest.raises(UserError, match=r"is refused: config.json names code to be fetched, "):
        check(tmp_path, config=config)


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', "[]", "[" * 100_000, "{"])
def test_what_readers_take_in_different_ways_is_refused(tmp_path, text):
    (tmp_path / "tokenizer.json").write_text(text)
    with pytest.raises(UserError, match="is refused: "):
        folder.check(tmp_path)
