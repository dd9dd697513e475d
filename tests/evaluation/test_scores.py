import gzip
import random
import shutil
from types import SimpleNamespace

import pytest
import sacrebleu

from hyptrans.commands import export
from hyptrans.evaluation import scores, significance
from hyptrans.support.errors import UserError
from tests.commands.conftest import call, refused

WORDS = ["the", "a", "dog", "cat", "man", "runs", "sees", "old", "red", "house", "in", "with"]


@pytest.fixture
def systems(tmp_path):
    """References, a system near them, one further away, each a file."""
    rng = random.Random(1)
    lines = [" ".join(rng.choices(WORDS, k=rng.randint(5, 12))) + " ." for _ in range(150)]

    def with_errors(share):
        return [
            " ".join(rng.choice(WORDS) if rng.random() < share else word for word in line.split())
            for line in lines
        ]

    made = {"ref": lines, "near": with_errors(0.1), "far": with_errors(0.4)}
    for name, text in made.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in text))
    return made


def test_compare_finds_a_real_difference(systems):
    found = {
        c.metric: c for c in significance.compare(systems["far"], systems["near"], systems["ref"])
    }
    assert set(found) == {"BLEU", "chrF2"}
    for one in found.values():
        assert one.values[1] > one.values[0]
        assert one.p < 0.01
    same = significance.compare(systems["near"], systems["near"], systems["ref"])
    assert all(one.p == 1 for one in same)
    # of the same score, but not the same
    near, far = systems["near"], systems["far"]
    mirrored = significance.compare([*near, *far], [*far, *near], 2 * systems["ref"])
    assert all(one.values[0] == one.values[1] and 0.3 < one.p < 0.7 for one in mirrored)


NOTHING_TO_FIND = {
    "spaces that tokens do not have": (
        ["Ein Hund läuft.", "Das war gut.", "Er kommt nicht.", "Wir gehen nun heim."],
        ["Ein Hund läuft .", "Das war gut .", "Er kommt nicht .", "Wir gehen nun heim ."],
        ["Ein Hund läuft.", "Das ist gut.", "Er kommt nicht.", "Wir gehen heim."],
    ),
    "nothing right in either": (["x"] * 3, ["y z"] * 3, ["Ein Hund läuft."] * 3),
    "one sentence": (["Ein Hund"], ["Ein Hund läuft."], ["Ein Hund läuft."]),
    "one sentence again and again": (["a b c d"] * 9, ["a b c e"] * 9, ["a b c d"] * 9),
    "one reference that has text": (["a b c d"] * 5, ["x y"] * 5, ["", "a b c d", *[" "] * 3]),
    "one translation that is there": (["", "a b c d", ""], [""] * 3, ["", "a b c d", ""]),
    "nothing but spaces": ([" "] * 3, [""] * 3, ["Ein Hund läuft."] * 3),
}


@pytest.mark.parametrize("case", NOTHING_TO_FIND)
def test_p_is_1_if_no_resample_makes_a_difference(case):
    first, second, references = NOTHING_TO_FIND[case]
    for samples in (7, 1000):
        found = significance.compare(first, second, references, samples=samples)
        assert [one.p for one in found] == [1, 1]


CHINESE = (["\u6211\u559c\u6b22\u5927\u732b\u3002"], ["\u6211\u559c\u6b22\u5927\u72d7\u3002"])
"""A translation with one wrong character of six, and its reference."""


@pytest.mark.parametrize(
    ("language", "tokenizer"),
    [
        *(("zh", "zh"), ("zh_Hans", "zh"), ("zh-TW", "zh"), ("ZH", "zh"), ("cmn", "zh")),
        *(("ja", "ja-mecab"), ("jpn_Jpan", "ja-mecab"), ("ko", "ko-mecab")),
        *(("de", "13a"), ("", "13a"), ("txt", "13a"), ("qtv", "13a")),
    ],
)
def test_score_takes_the_tokenizer_of_the_target_language(language, tokenizer):
    assert scores.tokenizer_for(language) == tokenizer


def test_chinese_bleu_counts_characters():
    translations, references = CHINESE
    assert scores.bleu(translations, references).value == 0
    found = scores.bleu(translations, references, tokenize="zh")
    wanted = sacrebleu.corpus_bleu(translations, [references], tokenize="zh").score
    assert found.value == round(wanted, 2) > 50
    assert "tok:zh" in found.signature
    (bleu, _) = significance.compare(translations, references, references, tokenize="zh")
    assert bleu.values == (pytest.approx(wanted), pytest.approx(100))
    assert "tok:zh" in bleu.signature


@pytest.mark.parametrize(
    ("name", "options", "tokenizer"),
    [
        *(("ref.zh", [], "zh"), ("ref.zh.gz", [], "zh"), ("ref.txt", [], "13a")),
        ("ref.txt", ["--tokenize", "char"], "char"),
        ("ref.zh", ["--tokenize", "13a"], "13a"),
    ],
)
@pytest.mark.parametrize("command", ["score", "compare"])
def test_file_ending_of_the_references_chooses_the_tokenizer(
    tmp_path, capsys, command, name, options, tokenizer
):
    files = [tmp_path / "a.out", tmp_path / name]
    for path, text in zip(files, CHINESE, strict=True):
        data = (text[0] + "\n").encode()
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    systems = files[:1] * (2 if command == "compare" else 1)
    status, shown, warning = call(capsys, command, *systems, files[1], *options)
    assert status == 0
    assert f"tok:{tokenizer}|" in shown
    # a score of 0 that says nothing is not to pass for a result
    assert ("no spaces between words" in warning) == (tokenizer == "13a")


class Parrot:
    """Return a model into Chinese that always gives the same translation."""

    languages = ("en", "zh_Hans")

    def n_best(self, lines, n, **_):
        return [[SimpleNamespace(text=CHINESE[0][0])] for _ in lines]


def test_model_card_uses_the_tokenizer_of_its_target_language(tmp_path):
    (tmp_path / "test.en").write_text("I like big dogs.\n")
    (tmp_path / "test.zh").write_text(f"{CHINESE[1][0]}\n")
    found = export._scores(Parrot(), tmp_path / "test.en", tmp_path / "test.zh")
    bleu, _ = found["scores"]
    assert bleu["value"] > 50
    assert "tok:zh" in bleu["signature"]


@pytest.mark.parametrize("language", ["ja", "ko"])
def test_error_names_the_extra_of_a_missing_tokenizer(tmp_path, capsys, language):
    for name in ("out", f"ref.{language}"):
        (tmp_path / name).write_text("\u306d\u3053\n")
    assert refused(capsys, "score", tmp_path / "out", tmp_path / f"ref.{language}") == (
        f"sacreBLEU's tokenizer {language}-mecab cannot be used: install it with "
        f"pip install 'sacrebleu[{language}]'"
    )


def test_compare_explains_a_p_of_1(tmp_path, capsys, systems):
    (tmp_path / "one").write_text("".join(f"{x}\n" for x in ["dog dog", *systems["near"][1:]]))
    status, shown, _ = call(
        capsys, "compare", *(tmp_path / name for name in ("near", "one", "ref"))
    )
    assert status == 0
    assert "| 1.0000 |" in shown
    assert "differ in 1 sentence that has a reference" in shown


def test_compare_prints_a_table_with_signatures(systems, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [f"D-{i}\t-0.1\t{text}\n" for i, text in enumerate(systems["near"])]
    (tmp_path / "generate-test.txt").write_text("S-0\tx\n" + "".join(reversed(lines)))
    table = call(capsys, "compare", "far", "generate-test.txt", "ref")[1].splitlines()
    assert "that has a reference" not in table[-1]
    assert table[0] == "| metric | far | generate-test.txt | difference | p, one-sided |"
    wanted = scores.bleu(systems["near"], systems["ref"]).value
    assert f" {wanted:.2f} ± " in table[2]
    lead = wanted - scores.bleu(systems["far"], systems["ref"]).value
    assert f"| {lead:+.2f} |" in table[2]
    assert lead > 1
    assert "bs:1000" in table[-1]
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        shutil.copy("generate-test.txt", name)
    paths = ["a/generate-test.txt", "b/generate-test.txt"]
    shown = call(capsys, "compare", *paths, "ref")[1]
    assert f"| metric | {paths[0]} | {paths[1]} |" in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["far", "nosuch", "ref"], "nosuch does not exist"),
        (["far", "short", "ref"], "short has 1 translations for 150 lines of ref"),
        (["bytes", "near", "ref"], "bytes, line 1: byte 0xff at position 1 is not UTF-8"),
        (["empty", "empty", "empty"], "empty is empty"),
        (["blank", "blank", "blank"], "blank has no text: name the references"),
        (["empty", "near", "short"], "empty is empty"),
        (["near", "late", "ref"], "late has no translation (D- line) of sentence 0"),
    ],
)
def test_bad_files_give_one_sentence_errors(systems, tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "short").write_text("one\n")
    (tmp_path / "empty").write_text("")
    (tmp_path / "blank").write_text(" \n\n\t\n")
    (tmp_path / "late").write_text("D-1\t-0.1\tb\n")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\n")
    assert refused(capsys, "compare", *words).startswith(message)


@pytest.mark.parametrize(
    "cut", ["D-", "D-1", "D-1\t", "D-1\t-0.", "D-x\t-0.1\ta", f"D-{'9' * 5000}\t1\ta"]
)
def test_error_reports_a_truncated_fairseq_generate_line(tmp_path, cut):
    path = tmp_path / "cut.out"
    path.write_text(f"S-0\ta\nD-0\t-0.1\tb\nS-1\tc\n{cut}")
    for read in (scores.read_translations, scores.detokenized):
        with pytest.raises(
            UserError, match=r"cut\.out, line 4 is not a whole D- line of fairseq-gen"
        ):
            read(path)


def test_lines_that_resemble_fairseq_output_are_translations(tmp_path):
    lines = ["D-Day\twas long ago.", "D-", "S-Bahn\t", "H-\tx", "a D-0\t1\tb"]
    path = tmp_path / "plain.out"
    path.write_text("\n".join(lines) + "\n")
    assert scores.read_translations(path) == lines


def test_only_a_line_feed_ends_a_line(tmp_path):
    path, lines = tmp_path / "text", ["a\rb", "c\u2028d\x85\x0ce", ""]
    path.write_bytes("\ufeffa\rb\r\nc\u2028d\x85\x0ce\n\n".encode())
    assert scores.read_text(path) == lines
    assert scores.read_translations(path) == lines
    path.write_bytes(b"".join(b"D-%d\t-1\t%s\n" % (i, s.encode()) for i, s in enumerate(lines)))
    assert scores.read_translations(path) == lines
