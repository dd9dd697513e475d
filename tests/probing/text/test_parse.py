import pytest
from stanza.utils.conll import CoNLL

from hyptrans.support.errors import UserError
from probing.text import parse
from probing.text.trees import read_conllu
from tests.probing.helpers.stanza import PROCESSORS, write_resources

FETCH = r'python -c "import stanza; stanza\.download\('


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
    summary = parse.annotate(Words(), lines, tmp_path / "out.conllu")
    assert (summary.lines, summary.sentences, summary.words) == (4, 3, 6)
    assert (summary.empty, summary.changed) == ([2, 4], [3])  # the stub drops a full stop
    trees = read_conllu(tmp_path / "out.conllu")
    assert [tree.id for tree in trees] == ["1", "3-1", "3-2"]


def test_lost_words_are_told(tmp_path):
    summary = parse.annotate(Words(lose="cat"), ["a dog", "a cat"], tmp_path / "out.conllu")
    assert summary.changed == [2]


def test_lines_are_parsed_in_batches(tmp_path):
    pipeline = Words()
    parse.annotate(pipeline, (f"line {i}" for i in range(10)), tmp_path / "o", batch_lines=4)
    assert pipeline.sizes == [4, 4, 2]


def test_line_that_did_not_stay_a_sentence_is_told_and_nothing_is_written(tmp_path):
    lines = ["a dog", "it barks. it runs"]
    with pytest.raises(UserError, match="line 2 became 2 sentences"):
        parse.annotate(Words(), lines, tmp_path / "o", one_sentence_per_line=True)
    with pytest.raises(UserError, match="no sentence"):
        parse.annotate(Words(), ["", " "], tmp_path / "o")
    assert list(tmp_path.iterdir()) == []


def test_missing_models_name_the_command_that_fetches_them(tmp_path):
    with pytest.raises(UserError, match=rf"{FETCH}'en', model_dir='{tmp_path}'\)\""):
        parse.load_pipeline("en", tmp_path)
    write_resources(tmp_path, PROCESSORS)
    with pytest.raises(UserError, match=rf"{FETCH}'en', model_dir='{tmp_path}'\)\"") as caught:
        parse.load_pipeline("en", tmp_path)
    assert "\n" not in str(caught.value)
    with pytest.raises(UserError, match=rf"{FETCH}'xx', model_dir"):
        parse.load_pipeline("xx", tmp_path)


def test_command_of_the_default_folder_names_none():
    assert parse.fetch_command("de", None) == "python -c \"import stanza; stanza.download('de')\""


@pytest.mark.parametrize(
    "content", ["", "[]", '{"en": {}}', '{"en": {"packages": {"default": {}}}}']
)
def test_unusable_list_of_models_is_told(tmp_path, content):
    (tmp_path / "resources.json").write_text(content)
    with pytest.raises(UserError, match=FETCH):
        parse.load_pipeline("en", tmp_path)


def test_damaged_model_is_told(tmp_path):
    write_resources(tmp_path, PROCESSORS)
    for name in PROCESSORS:
        (tmp_path / "en" / name).mkdir(parents=True)
        (tmp_path / "en" / name / "tiny.pt").write_bytes(b"no model")
    with pytest.raises(UserError, match=FETCH):
        parse.load_pipeline("en", tmp_path)


def test_a_device_that_is_not_there_is_told(tmp_path):
    with pytest.raises(UserError, match=r"--device nowhere cannot be used"):
        parse.load_pipeline("en", tmp_path, device="nowhere")
