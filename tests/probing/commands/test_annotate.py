import argparse
import gzip
from collections import Counter
from operator import eq

import pytest
import torch
from stanza.utils.conll import CoNLL

from hyptrans.support.errors import UserError
from probing.commands import annotate
from probing.text.trees import read_conllu
from tests.probing.helpers.model import real_data
from tests.probing.helpers.stanza import PROCESSORS, train, write_resources

FETCH = r'python -c "import stanza; stanza\.download\('


def run(*words):
    parser = argparse.ArgumentParser()
    annotate.add_arguments(parser)
    annotate.main(parser.parse_args([str(word) for word in words]))


class Words:
    """In place of a pipeline: a sentence for every full stop, all words under the first."""

    def __init__(self, lose=""):
        self.lose, self.sizes = lose, []

    def bulk_process(self, documents):
        self.sizes.append(len(documents))
        return [self.parse(document.text) for document in documents]

    def parse(self, text):
        blocks = []
        for part in text.split(". "):
            rows = [word for word in part.split() if word != self.lose]
            lines = [
                f"{i}\t{word}\t_\tX\t_\t_\t{0 if i == 1 else 1}\tdep\t_\t_"
                for i, word in enumerate(rows, 1)
            ]
            blocks.append("\n".join(lines))
        return CoNLL.conll2doc(input_str="\n\n".join(blocks) + "\n\n")


def test_sentences_are_called_after_their_lines_and_empty_lines_are_told(tmp_path):
    lines = ["a dog", "", "it barks. it runs", " \t"]
    summary = annotate.annotate(Words(), lines, tmp_path / "out.conllu")
    assert (summary.lines, summary.sentences, summary.words) == (4, 3, 6)
    assert (summary.empty, summary.changed) == ([2, 4], [3])  # the stub drops a full stop
    trees = read_conllu(tmp_path / "out.conllu")
    assert [tree.id for tree in trees] == ["1", "3-1", "3-2"]


def test_lost_words_are_told(tmp_path):
    summary = annotate.annotate(Words(lose="cat"), ["a dog", "a cat"], tmp_path / "out.conllu")
    assert summary.changed == [2]


def test_lines_are_parsed_in_batches(tmp_path):
    pipeline = Words()
    annotate.annotate(pipeline, (f"line {i}" for i in range(10)), tmp_path / "o", batch_lines=4)
    assert pipeline.sizes == [4, 4, 2]


def test_line_that_did_not_stay_a_sentence_is_told_and_nothing_is_written(tmp_path):
    lines = ["a dog", "it barks. it runs"]
    with pytest.raises(UserError, match="line 2 became 2 sentences"):
        annotate.annotate(Words(), lines, tmp_path / "o", one_sentence_per_line=True)
    with pytest.raises(UserError, match="no sentence"):
        annotate.annotate(Words(), ["", " "], tmp_path / "o")
    assert list(tmp_path.iterdir()) == []


def test_missing_models_name_the_command_that_fetches_them(tmp_path):
    with pytest.raises(UserError, match=rf"{FETCH}'en', model_dir='{tmp_path}'\)\""):
        annotate.load_pipeline("en", tmp_path)
    write_resources(tmp_path, PROCESSORS)
    with pytest.raises(UserError, match=rf"{FETCH}'en', model_dir='{tmp_path}'\)\"") as caught:
        annotate.load_pipeline("en", tmp_path)
    assert "\n" not in str(caught.value)
    with pytest.raises(UserError, match=rf"{FETCH}'xx', model_dir"):
        annotate.load_pipeline("xx", tmp_path)


def test_command_of_the_default_folder_names_none():
    assert (
        annotate.fetch_command("de", None) == "python -c \"import stanza; stanza.download('de')\""
    )


@pytest.mark.parametrize(
    "content", ["", "[]", '{"en": {}}', '{"en": {"packages": {"default": {}}}}']
)
def test_unusable_list_of_models_is_told(tmp_path, content):
    (tmp_path / "resources.json").write_text(content)
    with pytest.raises(UserError, match=FETCH):
        annotate.load_pipeline("en", tmp_path)


def test_damaged_model_is_told(tmp_path):
    write_resources(tmp_path, PROCESSORS)
    for name in PROCESSORS:
        (tmp_path / "en" / name).mkdir(parents=True)
        (tmp_path / "en" / name / "tiny.pt").write_bytes(b"no model")
    with pytest.raises(UserError, match=FETCH):
        annotate.load_pipeline("en", tmp_path)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_gpu_that_is_not_there_is_told(tmp_path):
    with pytest.raises(UserError, match=r"--gpu: .* --cpu"):
        annotate.load_pipeline("en", tmp_path, gpu=True)


def test_text_is_looked_at_before_models_are_loaded(tmp_path):
    words = ["--out", tmp_path / "o", "--stanza-dir", tmp_path]
    with pytest.raises(UserError, match="none does not exist"):
        run("--text", tmp_path / "none", *words)
    (tmp_path / "empty").touch()
    with pytest.raises(UserError, match="empty is empty"):
        run("--text", tmp_path / "empty", *words)
    (tmp_path / "latin").write_bytes("caf\u00e9\n".encode("latin-1"))
    with pytest.raises(UserError, match=r"latin, line 1: .* not UTF-8"):
        run("--text", tmp_path / "latin", *words)
    with pytest.raises(UserError, match="--batch-size must be above 0"):
        run("--text", tmp_path / "latin", "--batch-size", "0", *words)


LINES = [
    "The dog barks. It sees a cat.",
    "",
    "I don't know what the  caf\u00e9 did\tthere!",
    "\u201cWhy?\u201d she said \u2026 \U0001f600",
    "$5 (or 5\u20ac) at http://example.org/a_b?c=d",
]


@pytest.mark.slow
def test_models_trained_with_stanza_parse_new_text(tmp_path, capsys):
    models = train(real_data(), tmp_path)
    text = tmp_path / "text.gz"
    text.write_bytes(gzip.compress("".join(line + "\n" for line in LINES).encode()))
    words = ["--text", text, "--stanza-dir", models, "--cpu", "--batch-size", "2"]
    capsys.readouterr()

    run(*words, "--out", tmp_path / "free.conllu")
    assert "of 5 lines\nwithout text: lines 2\n" in capsys.readouterr().out
    free = read_conllu(tmp_path / "free.conllu")
    for number, line in enumerate(LINES, 1):
        own = [tree for tree in free if tree.id.split("-")[0] == str(number)]
        written = "".join(token.form for tree in own for token in tree.tokens)
        assert "".join(written.split()) == "".join(line.split())

    run(*words, "--out", tmp_path / "lines.conllu", "--one-sentence-per-line")
    assert [tree.id for tree in read_conllu(tmp_path / "lines.conllu")] == ["1", "3", "4", "5"]

    run(*words, "--out", tmp_path / "words.conllu", "--pretokenized")
    trees = read_conllu(tmp_path / "words.conllu")
    assert [list(tree.words) for tree in trees] == [line.split() for line in LINES if line]

    check_unseen_sentences(real_data(), models, tmp_path)


def check_unseen_sentences(ewt, models, folder):
    """The models have learned: they are far above what needs no model."""
    gold = read_conllu(ewt / "en_ewt-ud-test.conllu.gz")[:100]
    text = folder / "unseen"
    text.write_text("".join(" ".join(tree.words) + "\n" for tree in gold), encoding="utf-8")
    out = folder / "unseen.conllu"
    run("--text", text, "--out", out, "--stanza-dir", models, "--cpu", "--pretokenized")
    found = read_conllu(out)
    assert [tree.words for tree in found] == [tree.words for tree in gold]

    heads = [head for tree in gold for head in tree.heads]
    tags = [tag for tree in gold for tag in tree.upos]

    def share(guessed, wanted):
        return sum(map(eq, guessed, wanted)) / len(wanted)

    # every word under the next one, or the one before, and the commonest tag for all
    chains = ([i + step for tree in gold for i in range(len(tree.heads))] for step in (1, -1))
    chain = max(share(guess, heads) for guess in chains)
    commonest = Counter(tags).most_common(1)[0][1] / len(tags)
    head_share = share([head for tree in found for head in tree.heads], heads)
    tag_share = share([tag for tree in found for tag in tree.upos], tags)
    assert head_share > 1.25 * chain, (head_share, chain)
    assert tag_share > 2 * commonest, (tag_share, commonest)
