import pytest

from hyptrans.support.errors import UserError
from recipes.common import scoring

OUTPUT = """\
S-1\tb a
T-1\tthe cat sat down.
H-1\t-0.5\tthe cat sat up.
D-1\t-0.5\tthe cat sat up.
P-1\t-0.1 -0.2
S-0\ta b
T-0\ta dog, a bird and a fox.
D-0\t-0.3\ta dog, a bird and a fox.
S-2\tc
T-2\tnothing
D-2\t-9.9\t
Generate test with beam=4: BLEU = 12.34
"""


@pytest.fixture
def output(tmp_path):
    path = tmp_path / "generate-test.txt"
    path.write_text(OUTPUT, encoding="utf-8")
    return path


def write_references(tmp_path, *lines):
    path = tmp_path / "test.de"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_score_is_that_of_a_hand_count_and_has_a_signature(output, tmp_path):
    references = ("a dog, a bird and a fox.", "the cat sat down.", "nothing")
    found = scoring.score("bleu", output, write_references(tmp_path, *references))
    # 14 tokens against 15; of their n-grams 13/14, 10/12, 8/10 and 6/8 are in the reference
    product = 13 / 14 * 10 / 12 * 8 / 10 * 6 / 8
    expected = 100 * product**0.25 * 2.718281828459045 ** (1 - 15 / 14)
    assert found.value == pytest.approx(expected, abs=0.006)
    assert found.signature.startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("D-1", "X-1", r"no translation \(D- line\) of sentence 1"),
        ("D-1", "D-0", "two translations of sentence 0"),
    ],
)
def test_a_missing_or_doubled_translation_is_an_error(output, old, new, message):
    output.write_text(OUTPUT.replace(old, new), encoding="utf-8")
    with pytest.raises(UserError, match=message):
        scoring.score("bleu", output, output)


def test_another_number_of_references_is_an_error(output, tmp_path):
    with pytest.raises(UserError, match="3 translations for 2 lines"):
        scoring.score("bleu", output, write_references(tmp_path, "a", "b"))


@pytest.mark.parametrize(
    ("names", "baseline"),
    [
        (["hybonet_tiny", "euclidean_tiny", "euclidean_prenorm_tiny"], "euclidean_prenorm_tiny"),
        (["hybonet_tiny", "euclidean_tiny"], "euclidean_tiny"),
        (["hybonet_tiny", "han_tiny"], None),
        (["euclidean_prenorm_tiny"], None),
    ],
)
def test_models_are_compared_with_the_pre_norm_twin_or_else_the_other(names, baseline):
    assert scoring.baseline_of(names) == baseline
