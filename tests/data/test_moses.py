import pytest

from hyptrans.data.moses import TextSteps, moses_rules

# Lines and what the Moses tokenizer makes of them with its default escapes.
ENGLISH = [
    ("It's John's, isn't it?", "It &apos;s John &apos;s , isn &apos;t it ?"),
    ('He said: "No."', "He said : &quot; No . &quot;"),
    ("AT&T's state-of-the-art R&D", "AT &amp; T &apos;s state-of-the-art R &amp; D"),
    ("tags <b> [x] |", "tags &lt; b &gt; &#91; x &#93; &#124;"),
    ("  two   spaces\u00a0here ", "two spaces here"),
]


GERMAN = [
    ("Das ist's, z. B. am 3. Mai.", "Das ist &apos; s , z. B. am 3. Mai ."),
]


@pytest.mark.parametrize(("language", "lines"), [("en", ENGLISH), ("de", GERMAN)])
def test_tokens_match_moses(language, lines):
    tokenize = TextSteps(language, tokenize=True).build()
    for line, expected in lines:
        assert tokenize(line) == expected


def test_aggressive_splits_hyphens_inside_words_only():
    steps = TextSteps("en", tokenize=True, aggressive=True).build()
    assert steps("state-of-the-art - 1990-1995") == ("state @-@ of @-@ the @-@ art - 1990 @-@ 1995")


def test_curly_apostrophes_become_straight_before_tokenizing():
    line = "it\u2019s"
    assert TextSteps("en", tokenize=True).build()(line) == "it \u2019 s"
    steps = TextSteps("en", straight_apostrophe=True, tokenize=True, lowercase=True)
    assert steps.build()(line.upper()) == "it &apos;s"


def test_normalizer_follows_the_perl_script_and_removes_non_printing_characters():
    steps = TextSteps("de", normalize=True).build()
    assert steps("„Ja“ \u2013 5\u00a0% … \u2019") == '"Ja" - 5% ... "'
    # soft hyphen, zero-width space and an unassigned code point are of category C
    assert steps("a\u00adb\u200bc\u0378d") == "a b c d"


def test_xml_entities_are_tokenized_as_text():
    steps = TextSteps("en", xml_escape=True, tokenize=True).build()
    assert steps("R&D") == "R &amp; amp ; D"


def test_languages_without_their_own_prefix_list_are_supported():
    assert moses_rules("de") == "de"
    assert moses_rules("xx") == "en"
