import pickle

import pytest

from hyptrans.support.errors import UserError

ODD = [
    "",
    "  ",
    "</s> Good <pad> night <unk>.",
    "\u4f60\u597d \U0001f40d",
    "a\u00a0b\tc",
    "@-@ &quot;x&quot;",
]


def test_token_ids_match_the_text_pipeline(tokenizer, ours, sentences):
    texts = [*sentences, *ODD]
    for given, language in (
        ({"text": texts}, ours._source),
        ({"text_target": texts}, ours._target),
    ):
        wanted = [row or [2] for row in language.rows(texts)]
        found = tokenizer(**given)
        assert found["input_ids"] == wanted
    # and not of the target any more
    assert tokenizer(sentences)["input_ids"] == ours._source.rows(sentences)


def test_token_ids_decode_to_their_text(tokenizer, ours):
    texts = ["Gute Nacht, Tom!", "Wo ist der Bahnhof?"]
    rows = tokenizer(text_target=texts)["input_ids"]
    assert tokenizer.batch_decode(rows, skip_special_tokens=True) == texts
    special = (tokenizer.bos_token_id, tokenizer.pad_token_id)
    assert (*special, tokenizer.eos_token_id, tokenizer.unk_token_id) == (0, 1, 2, 3)
    assert len(tokenizer) == ours.dictionary_sizes[0]


def test_a_pickled_tokenizer_behaves_the_same(tokenizer, sentences):
    again = pickle.loads(pickle.dumps(tokenizer))
    assert again(sentences)["input_ids"] == tokenizer(sentences)["input_ids"]


def test_tokenizer_refuses_a_pair(tokenizer):
    with pytest.raises(UserError, match="not a pair"):
        tokenizer("one", "two")


def test_tokenizer_truncates_long_text(tokenizer):
    assert tokenizer.model_max_length == 1024
    assert len(tokenizer("word " * 2000, truncation=True)["input_ids"]) == 1024
